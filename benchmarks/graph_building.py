"""Time of building clones of inception_v3 with their gradients, by calls and by copies.

    python -m benchmarks.graph_building

Builds 1, 2, 4 and 8 clones, calling `model_fn` for each one and copying the first one, each
in a process of its own, as `train_image_classifier` does (without tensor equality, with which
calls take longer).  Prints seconds of the processor, which other programs change less than
those of the clock: all is built in one thread.  They are medians of the rounds, with their
ratios to one clone.
Goal: 8 clones by copy take at most 2.0 times the time of one.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time

CLONES = (1, 2, 4, 8)
GOAL = 2.0
BATCH_SIZE, NUM_CLASSES = 32, 1000


def measure(num_clones: int, copy: bool, network: str) -> float:
    """Seconds of one `deploy` in this process, after a small one that loads what is needed."""
    import tensorflow.compat.v1 as tf  # noqa: PLC0415 - the parent process needs none

    from model_deploy import DeploymentConfig, deploy  # noqa: PLC0415
    from nets import nets_factory  # noqa: PLC0415

    def build(name: str, clones: int, copies: bool) -> float:
        network_fn = nets_factory.get_network_fn(name, NUM_CLASSES, 4e-5, is_training=True)
        size = network_fn.default_image_size

        def model_fn() -> None:
            images = tf.random_uniform([BATCH_SIZE, size, size, 3])
            labels = tf.random_uniform([BATCH_SIZE], 0, NUM_CLASSES, tf.int64)
            logits, end_points = network_fn(images)
            tf.losses.sparse_softmax_cross_entropy(labels, logits)
            if "AuxLogits" in end_points:
                tf.losses.sparse_softmax_cross_entropy(labels, end_points["AuxLogits"], 0.4)

        config = DeploymentConfig(num_clones=clones, copy_clones=copies)
        with tf.Graph().as_default():
            start = time.thread_time()
            deploy(config, model_fn, optimizer=tf.train.RMSPropOptimizer(0.1))
            return time.thread_time() - start

    tf.disable_eager_execution()
    tf.disable_tensor_equality()
    build("cifarnet", 2, copy)
    return build(network, num_clones, copy)


def measure_in_process(num_clones: int, copy: bool, network: str) -> float:
    """`measure` in a new process, so that no graph before it is in memory."""
    command = [sys.executable, "-m", "benchmarks.graph_building", f"--network={network}"]
    command += [f"--clones={num_clones}", *(["--copy"] if copy else [])]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    seconds: float = json.loads(done.stdout.splitlines()[-1])
    return seconds


def main() -> None:
    """Alternates between all cases, and prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--network", default="inception_v3")
    parser.add_argument("--clones", type=int, help="measure one number of clones, print seconds")
    parser.add_argument("--copy", action="store_true", help="with --clones: by copy")
    args = parser.parse_args()
    if args.clones is not None:
        print(json.dumps(measure(args.clones, args.copy, args.network)))
        return
    cases = [(n, copy) for n in CLONES for copy in (False, True) if n > 1 or not copy]
    rounds = [
        {case: measure_in_process(*case, args.network) for case in cases}
        for _ in range(args.rounds)
    ]
    for n, copy in cases:
        seconds = [each[n, copy] for each in rounds]
        ratios = [each[n, copy] / each[1, False] for each in rounds]
        ratio = statistics.median(ratios)
        short = f"  short of {GOAL}" if copy and n == max(CLONES) and ratio > GOAL else ""
        print(
            f"{ratio:.2f} ({min(ratios):.2f} to {max(ratios):.2f})  {n} clone(s) by "
            f"{'copy' if copy else 'call'} / one, {statistics.median(seconds):.2f} s{short}"
        )


if __name__ == "__main__":
    main()
