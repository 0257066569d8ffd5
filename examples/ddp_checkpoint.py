"""Data-parallel training that survives a drain and a crash without changing a bit of its losses.

    selvedge job submit --shape 2x2x4 --name ddp --retries 1 -- \
        /usr/bin/python3 examples/ddp_checkpoint.py --out run

Told to stop (SIGTERM), the ranks agree on a step, rank 0 saves the model, the optimiser, every
rank's random numbers and the place in the data, and all exit; a later start goes on from there.
Every few steps it saves too, so that a crash costs no more than those.
"""

import argparse
import os
import signal
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

parser = argparse.ArgumentParser()
parser.add_argument("--out", required=True, help="where checkpoint and losses lie")
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--save-every", type=int, default=10)
parser.add_argument("--pause", type=float, default=0.0, help="seconds to sleep in each step")
args = parser.parse_args()

told = False  # Set by SIGTERM; SELVEDGE_NOTICE_FILE says when and why.


def on_sigterm(_signal, _frame):
    global told
    told = True


signal.signal(signal.SIGTERM, on_sigterm)
torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)
dist.init_process_group("gloo")  # MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE are set.
rank, world = dist.get_rank(), dist.get_world_size()
os.makedirs(args.out, exist_ok=True)
checkpoint = os.path.join(args.out, "checkpoint.pt")

torch.manual_seed(1)  # The same model everywhere ...
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 10))
optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
torch.manual_seed(100 + rank)  # ... and dropout of its own for each rank.
step = 0
if os.path.exists(checkpoint):
    saved = torch.load(checkpoint)
    model.load_state_dict(saved["model"])
    optimiser.load_state_dict(saved["optimiser"])
    torch.set_rng_state(saved["rng"][rank])
    step = saved["step"]
# Without this DDP regroups gradients after the first step of each start, and sums round otherwise.
ddp = DistributedDataParallel(model, find_unused_parameters=True)


def batch(step):
    """The data at a place: the same whenever and wherever it is read."""
    dice = torch.Generator().manual_seed(1_000_003 * step + rank)
    inputs = torch.randn(32, 64, generator=dice)
    return inputs, inputs[:, :10].argmax(dim=1)


def save():
    rng = [torch.empty_like(torch.get_rng_state()) for _ in range(world)]
    dist.all_gather(rng, torch.get_rng_state())
    if rank == 0:
        state = {"step": step, "rng": rng, "model": model.state_dict(), "optimiser": optimiser.state_dict()}
        with open(checkpoint + ".new", "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(checkpoint + ".new", checkpoint)
    dist.barrier()


print(f"rank {rank} of {world} begins at step {step}", flush=True)
losses = open(os.path.join(args.out, "losses.txt"), "a") if rank == 0 else None
while step < args.steps:
    inputs, targets = batch(step)
    optimiser.zero_grad()
    loss = nn.functional.cross_entropy(ddp(inputs), targets)
    loss.backward()
    optimiser.step()
    # One sum for both: the loss over all ranks, and whether any of them was told to stop.
    shared = torch.tensor([loss.item(), float(told)], dtype=torch.float64)
    dist.all_reduce(shared)
    if losses:
        print(step, float(shared[0] / world).hex(), file=losses, flush=True)
    step += 1
    if shared[1] > 0 or step % args.save_every == 0 or step == args.steps:
        save()
    if shared[1] > 0:
        print(f"rank {rank} was told to stop and has saved step {step}", flush=True)
        break
    time.sleep(args.pause)
else:
    print(f"rank {rank} is done", flush=True)
