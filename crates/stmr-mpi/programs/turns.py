"""The first thread waits for another, with a limit each time, as often as that takes: by a lock, by sleeping, and for
what comes into a queue.  What it then sends is the same in all replicas, and so is the time that it looks at.  First,
processes of its own work for it, which a thread of its ends."""

import concurrent.futures
import os
import queue
import threading
import time

from mpi4py import MPI

comm = MPI.COMM_WORLD


def work(rounds, ended):
    for _ in range(rounds):
        sum(range(20000))
    ended()


def begin(rounds, ended):
    threading.Thread(target=work, args=(rounds, ended)).start()


with concurrent.futures.ProcessPoolExecutor(2) as pool:
    os.write(1, f"{comm.rank} {comm.allreduce(sum(pool.map(abs, range(-30, 0))))}\n".encode())

for turn in range(6):
    done = threading.Event()
    begin(20 + 7 * turn, done.set)
    while not done.wait(0.0005):
        pass
    done = threading.Event()
    begin(20 + 5 * turn, done.set)
    while not done.is_set():
        time.sleep(0.0003)
    rows = queue.SimpleQueue()
    begin(20 + 3 * turn, lambda: rows.put(turn))
    while True:
        try:
            row = rows.get(timeout=0.0004)
            break
        except queue.Empty:
            pass
    times = comm.allgather((time.time(), time.monotonic(), time.perf_counter()))
    os.write(1, f"{comm.rank} {row} {len(times)} {comm.allreduce(turn)}\n".encode())
