"""Runs one module of mpi4py's own tests and writes what each test came to.

Arguments: the folder of the tests, the module, a folder for the outcomes, and what is left out: names
of classes (`module.Class`), of tests (`module.Class.test`) and of calls (`MPI.Class.Call`), which raise
what mpi4py does where MPI has not got them.  Each process has a file of its own, in which a line says that
a test begins, and the next one what it came to.
"""

import os
import sys
import unittest

tests, module, folder, *left_out = sys.argv[1:]
sys.path.insert(0, tests)
os.chdir(os.path.dirname(tests))
# Known failures of an MPI stand in the tests' own helpers, by the MPI that is found here.
for absent in ("cupy", "numba"):
    sys.modules[absent] = None

from mpi4py import MPI  # noqa: E402



def absent(*args, **kwargs):
    raise NotImplementedError


for name in left_out:
    space, kind, *call = name.split(".")
    if space == "MPI":
        kinds = (getattr(MPI, kind),)
        setattr(MPI, kind, type(kind, kinds, {call[0]: staticmethod(absent)}))

book = open(os.path.join(folder, f"rank.{MPI.COMM_WORLD.Get_rank()}"), "w")


def write(word, test):
    book.write(f"{word} {test.id()}\n")
    book.flush()


class Result(unittest.TestResult):
    def startTest(self, test):
        super().startTest(test)
        self.failed = False
        write("begins", test)

    def addError(self, test, err):
        super().addError(test, err)
        self.failed = True
        sys.stderr.write(f"{test.id()}: {self.errors[-1][1]}\n")

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.failed = True
        sys.stderr.write(f"{test.id()}: {self.failures[-1][1]}\n")

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        self.failed = self.failed or err is not None

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        write("skipped", test)
        self.failed = None

    def stopTest(self, test):
        if self.failed is not None:
            write("failed" if self.failed else "ok", test)
        super().stopTest(test)


def each(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from each(test)
        else:
            yield test


def is_in(test):
    name = test.id()
    return name not in left_out and name.rsplit(".", 1)[0] not in left_out


found = unittest.defaultTestLoader.loadTestsFromName(module)
unittest.TestSuite(test for test in each(found) if is_in(test)).run(Result())
book.close()
