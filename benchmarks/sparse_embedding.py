"""Cost of a second clone with a [1000000, 64] embedding table (256 MB).

    python -m benchmarks.sparse_embedding

Trains the same global batch on one clone and on two, each in a process of its own, and
prints milliseconds per step and peak memory, medians of the rounds, with their ratios.
Goal: both ratios at most 1.2.  A gradient made dense would cost 256 MB and its writing
in each step.
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time

ROWS, WIDTH, GLOBAL_BATCH, WORDS = 1_000_000, 64, 64, 20
GOAL = 1.2


def measure(num_clones: int, steps: int) -> dict[str, float]:
    """Trains in this process: milliseconds per step (median) and peak memory in MB."""
    import tensorflow.compat.v1 as tf  # noqa: PLC0415 - the parent process needs none

    from model_deploy import DeploymentConfig, deploy  # noqa: PLC0415

    def model_fn() -> None:
        table = tf.get_variable("table", [ROWS, WIDTH], initializer=tf.zeros_initializer())
        words = tf.random_uniform([GLOBAL_BATCH // num_clones, WORDS], 0, ROWS, tf.int64)
        tf.losses.mean_squared_error(
            tf.ones([GLOBAL_BATCH // num_clones, WORDS, WIDTH]),
            tf.nn.embedding_lookup(table, words),
        )

    with tf.Graph().as_default(), tf.Session() as session:
        config = DeploymentConfig(num_clones=num_clones, clone_on_cpu=True)
        model = deploy(config, model_fn, optimizer=tf.train.GradientDescentOptimizer(0.1))
        session.run(tf.global_variables_initializer())
        step = session.make_callable(model.train_op)
        seconds = []
        for _ in range(steps):
            start = time.perf_counter()
            step()
            seconds.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"milliseconds": 1000 * statistics.median(seconds), "megabytes": peak}


def measure_in_process(num_clones: int, steps: int) -> dict[str, float]:
    """`measure` in a new process, so that peak memory is that of this measurement."""
    command = [sys.executable, "-m", "benchmarks.sparse_embedding"]
    command += [f"--clones={num_clones}", f"--steps={steps}"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def main() -> None:
    """Alternates between one clone and two, and prints the ratios first."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--clones", type=int, help="measure one number of clones, print JSON")
    args = parser.parse_args()
    if args.clones is not None:
        print(json.dumps(measure(args.clones, args.steps)))
        return
    rounds = [[measure_in_process(n, args.steps) for n in (1, 2)] for _ in range(args.rounds)]
    for what in ("milliseconds", "megabytes"):
        one, two = (statistics.median(r[i][what] for r in rounds) for i in (0, 1))
        verdict = "" if two / one <= GOAL else f"  short of {GOAL}"
        ratios = [r[1][what] / r[0][what] for r in rounds]
        spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
        print(
            f"{statistics.median(ratios):.2f} ({spread})  two clones / one, {what}: "
            f"{two:.2f} / {one:.2f}{verdict}"
        )


if __name__ == "__main__":
    main()
