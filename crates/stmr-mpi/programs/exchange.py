"""Objects and buffers through mpi4py: pickles of any size, sets and dicts in hash order, probes,
collectives, requests, and a communicator of half of all processes."""
import ctypes
import random
import time

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
right, left = (rank + 1) % size, (rank - 1) % size
total = 0


class Moment(ctypes.Structure):
    """struct timespec."""

    _fields_ = [("s", ctypes.c_long), ("ns", ctypes.c_long)]


def beside():
    """The clock, as a library reads it while others may run Python."""
    now = Moment()
    assert ctypes.CDLL(None).clock_gettime(time.CLOCK_MONOTONIC, ctypes.byref(now)) == 0
    return now.s, now.ns


for turn in range(20):
    row = {"rank": rank, "turn": turn, "words": {str(i) for i in range(rank + turn)}, "at": time.time(),
           "beside": beside(), "dice": random.random()}
    request = world.isend(row, dest=right, tag=turn)
    got = world.recv(source=MPI.ANY_SOURCE if turn % 2 else left, tag=turn)
    request.wait()
    assert got["rank"] == left and len(got["words"]) == left + turn, got
    total += world.allreduce(got["rank"] * turn)
    box = bytearray(range(turn, turn + 64)) if rank == turn % size else bytearray(64)
    world.Bcast([box, MPI.BYTE], root=turn % size)
    total += sum(box)
rows = world.allgather((rank, total))
parts = world.alltoall([rank * 10 + i for i in range(size)])
half = world.Split(rank % 2, rank)
names = half.gather(f"process {rank}", root=0)
half.Free()
if rank == 0:
    world.send(b"x" * 300_000, dest=size - 1, tag=99)
if rank == size - 1:
    status = MPI.Status()
    world.Probe(source=MPI.ANY_SOURCE, tag=99, status=status)
    assert len(world.recv(source=status.Get_source(), tag=99)) == 300_000
everything = world.gather((parts, names, total), root=0)
if rank == 0:
    print("exchange:", rows, everything)
