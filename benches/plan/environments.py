"""Environments that nobody here wrote: what a policy learnt from a log of random actions earns in the environment, by the length of the log.

    METASTATE=target/release/metastate python benches/plan/environments.py frozenlake --seeds 5
    METASTATE=target/release/metastate python benches/plan/environments.py mountaincar --seeds 5
"""

from __future__ import annotations

import argparse
import json

import gymnasium
import numpy as np

import rivals


class FrozenLake:
    """8 x 8, slippery: a step goes where it should one time of three, else to either side. Paid 1 at the goal."""

    name, discount, limit, states, actions = "FrozenLake-v1 8x8 slippery", 0.99, 200, 65, 4
    noise = None

    def __init__(self):
        self.env = gymnasium.make("FrozenLake-v1", map_name="8x8", is_slippery=True, max_episode_steps=self.limit)

    def state(self, observation):
        return int(observation)

    def begin(self, seed, rng, exploring):
        observation, _ = self.env.reset(seed=seed)
        if exploring:
            # Random actions from the corner hardly ever come far: a log of a lake begins anywhere on the ice.
            ice = [i for i, c in enumerate(self.env.unwrapped.desc.flatten()) if c in b"SF"]
            observation = self.env.unwrapped.s = int(rng.choice(ice))
        return self.state(observation)

    def step(self, action, rng):
        observation, reward, ended, cut, _ = self.env.step(action)
        return self.state(observation), float(reward), ended, cut


class MountainCar:
    """Position and speed in 30 x 30 boxes; every second action is, one time of five, another one by chance. Paid -1 a step until the top."""

    name, discount, limit, boxes, actions = "MountainCar-v0, 30 x 30 boxes, noisy", 0.99, 200, 30, 3
    states = 30 * 30 + 1

    def __init__(self):
        self.env = gymnasium.make("MountainCar-v0", max_episode_steps=10_000).unwrapped
        self.low, self.high = self.env.observation_space.low, self.env.observation_space.high

    def state(self, observation):
        box = np.clip((self.boxes * (observation - self.low) / (self.high - self.low)).astype(int), 0, self.boxes - 1)
        return int(box[0] * self.boxes + box[1])

    def begin(self, seed, rng, exploring):
        observation, _ = self.env.reset(seed=seed)
        if exploring:
            observation = rng.uniform(self.low, self.high)
            self.env.state = tuple(observation)
        return self.state(np.asarray(observation))

    def step(self, action, rng):
        if rng.random() < 0.2:
            action = int(rng.integers(3))
        observation, reward, ended, _, _ = self.env.step(action)
        # The top is a state of its own, where it ends.
        return (self.states - 1 if ended else self.state(observation)), float(reward), ended, False


def gather(world, steps, seed, length):
    rng = np.random.default_rng(seed)
    log = {k: [] for k in ("episode", "step", "state", "action", "reward", "next")}
    episode = 0
    while len(log["state"]) < steps:
        state = world.begin(int(rng.integers(2**31)), rng, True)
        for step in range(length):
            action = int(rng.integers(world.actions))
            following, reward, ended, cut = world.step(action, rng)
            for k, x in zip(log, (episode, step, state, action, reward, following)):
                log[k].append(x)
            state = following
            if ended or cut or len(log["state"]) >= steps:
                break
        episode += 1
    return {k: np.array(x) for k, x in log.items()}


def earns(world, policy, episodes, seed):
    """Mean return of whole episodes, not discounted, and its standard error."""
    rng = np.random.default_rng(10_000 + seed)
    returns = []
    for _ in range(episodes):
        state, total = world.begin(int(rng.integers(2**31)), rng, False), 0.0
        for _ in range(world.limit):
            state, reward, ended, cut = world.step(int(policy[state]), rng)
            total += reward
            if ended or cut:
                break
        returns.append(total)
    return float(np.mean(returns)), float(np.std(returns) / np.sqrt(episodes))


def main():
    ask = argparse.ArgumentParser()
    ask.add_argument("world", choices=["frozenlake", "mountaincar"])
    ask.add_argument("--seeds", type=int, default=5)
    ask.add_argument("--steps", type=int, nargs="+")
    ask.add_argument("--episodes", type=int, default=500)
    ask = ask.parse_args()
    world = {"frozenlake": FrozenLake, "mountaincar": MountainCar}[ask.world]()
    length = {"frozenlake": 50, "mountaincar": 50}[ask.world]
    for steps in ask.steps or {"frozenlake": [1_000, 3_000, 10_000, 30_000], "mountaincar": [3_000, 10_000, 30_000, 100_000]}[ask.world]:
        for seed in range(1, ask.seeds + 1):
            log = gather(world, steps, seed, length)
            args = (log, world.states, world.actions, world.discount)
            policy, rank, plan, seconds = rivals.ours(*args)
            policies = {
                "ours": policy,
                "empirical": rivals.empirical(*args),
                "q-learning": rivals.q_learning(*args, passes=max(5, min(60, 1_500_000 // steps)), seed=seed),
                "svd": rivals.svd(*args, rank),
                "random": None,
            }
            row = {"world": world.name, "steps": steps, "seed": seed, "rank": rank}
            for name, chosen in policies.items():
                if chosen is None:
                    chosen = np.random.default_rng(seed).integers(world.actions, size=world.states)
                row[name] = earns(world, chosen, ask.episodes, seed)
            row["seconds"] = [round(x, 1) for x in seconds]
            print(json.dumps(row), flush=True)


main()
