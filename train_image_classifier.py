"""Trains an image classifier on the GPUs of this machine, or as one process of a cluster.

    train_image_classifier --train_dir=digits_run

trains a LeNet on scikit-learn's handwritten digits, on all visible GPUs or else on
two clones on the CPU, and ends with its accuracy on images that it has not seen.  Checkpoints,
metrics and a picture are in the folder; the same command again goes on from there.

    train_image_classifier --dataset_name=folder --dataset_dir=photos --model_name=inception_v3

trains on your own images, `photos/<class>/*.jpg`.
"""

import contextlib
import dataclasses
import functools
import itertools
import os
import sys
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

from model_deploy.commands import without_tensorflow_notices

with without_tensorflow_notices():
    import tensorflow
    import tensorflow.compat.v1 as tf

    import model_deploy
    from model_deploy import elastic, inputs, training
    from model_deploy import keras as keras_lib
    from model_deploy.cluster import WORLD_FILE, Cluster, ClusterOptions, end_process
    from model_deploy.commands import named_as, option, run_command, write_options
    from nets import keras_networks, nets_factory

# Epochs of a run whose length is not given.
DEFAULT_EPOCHS = 20
# Of more classes a picture of the confusion matrix would show nothing.
MOST_CLASSES_SHOWN = 100
# What an elastic run has no use for: flags that name another cluster or another way to train, and
# what it cannot do while workers come and go.
NOT_ELASTIC = (
    *("master", "cluster_source", "job_name", "task", "task_id", "ps_hosts", "worker_hosts"),
    *("num_ps_tasks", "sync_replicas", "asynchronous", "accumulate_steps", "sync_batch_norm"),
    *("wire_precision", "copies_check_every_n_steps", "export_keras", "replicas_to_aggregate"),
)


@dataclasses.dataclass(frozen=True)
class TrainOptions(
    inputs.Augmentation,
    ClusterOptions,
    training.DeploymentOptions,
    training.OptimizerOptions,
    training.LearningRateOptions,
    training.LoopOptions,
    training.ClassifierOptions,
    training.FineTuneOptions,
):
    """All settings of a training run; each is a flag."""

    train_dir: str = option("/tmp/tfmodel/", "folder for checkpoints and TensorBoard events")
    dataset_split_name: str = option("train", "split to train on", topic="inputs")
    max_number_of_steps: int | None = option(
        None,
        f"number of the last step; default: that of epoch {DEFAULT_EPOCHS}",
        minimum=1,
        topic="loop",
    )
    clip_norm: float | None = option(
        None,
        "largest joint L2 norm of the gradients; default: not clipped",
        above=0,
        topic="optimizer",
    )
    shuffle_block: int | None = option(
        None,
        "neighbours of a file that are read together, for slow storage; default: each by itself",
        minimum=1,
        topic="inputs",
    )
    fast_decode: bool = option(
        False, "reduce large JPEGs while they are decoded, by 2, 4 or 8", topic="inputs"
    )
    seed: int = option(0, "seed of initial values and of the order of images", minimum=0)
    deterministic: bool = option(
        False,
        "use only ops that give the same bits in every run, on GPUs as well, where they are slower",
        topic="loop",
    )
    export_keras: str | None = option(
        None,
        "file .weights.h5 or .keras for the weights of a keras/... network at the end",
        topic="checkpoints",
    )
    quantize_delay: int = training.gone("quantize_delay")
    describe: bool = option(False, "print what is placed on which device, before training")
    describe_picture: str | None = option(
        None, "SVG file for a picture of devices, what is on them and what moves in a step"
    )
    debug: bool = option(False, "show where an error comes from", topic="other")

    def __post_init__(self) -> None:
        super().__post_init__()
        nets_factory.check_network_name("model_name", self.model_name)
        if self.deterministic:
            self._check_order_of_updates()
        if self.export_keras is not None:
            keras_lib.check_export("export_keras", self.export_keras)
        from_keras = keras_lib.is_weights_file(self.checkpoint_path or "")
        for field, of_keras in (("export_keras", True), ("checkpoint_path", from_keras)):
            value = getattr(self, field)
            if value is not None and of_keras and not self.is_keras:
                raise ValueError(
                    f"{field} must go with a network keras/..., got {value} with {self.model_name}"
                )
        if self.describe_picture is not None and not self.describe_picture.endswith(".svg"):
            raise ValueError(f"describe_picture must end in .svg, got {self.describe_picture!r}")

    def _check_order_of_updates(self) -> None:
        """Sums and updates in the order in which they happen to come are never the same twice."""
        if self.asynchronous:
            raise ValueError("deterministic must be False with asynchronous=True, got True")
        if self.worker_replicas > 1 and not self.all_reduce:
            raise ValueError(
                f"deterministic must be False with worker_replicas={self.worker_replicas} on "
                "parameter servers, got True; --all_reduce adds up in a fixed order"
            )


class Evaluations:
    """Those of a run's checkpoints; the newest one is not evaluated twice.

    Args:
      evaluator: of the held-out split.
    """

    def __init__(self, evaluator: training.Evaluator) -> None:
        self._evaluator = evaluator
        self._last: training.Evaluation | None = None

    def scores(self, checkpoint: str) -> dict[str, float]:
        """What the loop shows of a checkpoint."""
        found = self._last = self._evaluator.evaluate(checkpoint)
        return {"accuracy": found.accuracy, "recall_at_5": found.recall_at_5}

    def of_newest(self, train_dir: str) -> training.Evaluation:
        """The evaluation of the newest checkpoint in a folder that this run writes."""
        newest = training.find_checkpoint(train_dir)
        if self._last is None or self._last.checkpoint != newest:
            self._last = self._evaluator.evaluate(newest)
        return self._last


class Run(NamedTuple):
    """A run: what is trained on what, and for how long."""

    config: model_deploy.DeploymentConfig
    dataset: inputs.Dataset
    batch_size: int
    steps_per_epoch: int
    max_steps: int
    batches_in_update: int

    @property
    def held_out(self) -> str | None:
        """The split to evaluate on; None where there is none."""
        splits = [name for name in ("test", "validation") if name in self.dataset.splits]
        return splits[0] if splits else None

    @property
    def update_batch_size(self) -> int:
        """Images of one update of the variables, of all workers that take part in it."""
        return self.batch_size * self.batches_in_update

    @property
    def images_per_step(self) -> int:
        """Images of this worker in a step."""
        return self.batch_size * min(self.batches_in_update, self.config.batches_per_step)


def plan(options: TrainOptions) -> Run:
    """Finds devices and dataset and checks the settings against them.

    Raises:
      ValueError: for a setting that breaks a rule.
    """
    num_gpus = len(tf.config.list_physical_devices("GPU"))
    config = training.deployment_config(options, num_gpus)
    batch_size = training.clone_batch_size(options, config.num_clones)
    dataset = training.get_dataset(options, options.dataset_split_name)
    clones = training.clones_in_update(options, config.num_clones)
    batches = clones * config.accumulate_steps
    # Checks, before anything is built, that the dataset is large enough for the pipelines.
    inputs.Order(dataset.num_examples, batch_size * config.batches_per_step * config.num_replicas)
    steps_per_epoch = dataset.num_examples // (batch_size * batches)
    max_steps = options.max_number_of_steps or DEFAULT_EPOCHS * steps_per_epoch
    return Run(config, dataset, batch_size, steps_per_epoch, max_steps, batches)


def prepare(options: TrainOptions, *, checks_start: bool) -> tuple[Run, training.Classifier]:
    """Makes ready what graphs are built of, and ops to be deterministic, if they are to be.

    Args:
      options: the settings.
      checks_start: whether to look at the train_dir, as the process that begins to fill it.

    Raises:
      ValueError: for a setting that breaks a rule.
      OSError: if the train_dir cannot be written.
    """
    if options.deterministic:
        # Of the whole process, and read when ops are made: those of the evaluation, too.
        tensorflow.config.experimental.enable_op_determinism()
    run = plan(options)
    classifier = training.Classifier.of(options, run.dataset, nets_factory.get_network_fn)
    if checks_start:
        # `train` checks both, too, but only when the graph has been built.
        training.check_start(options.train_dir, options.checkpoint_path, options.resume)
        training.check_writable(options.train_dir)
    return run, classifier


def build(
    options: TrainOptions, run: Run, classifier: training.Classifier
) -> tuple[model_deploy.DeployedModel, dict[str, Any]]:
    """Builds inputs, optimizer and clones in the default graph.

    Returns:
      The model, and what `model_deploy.train` shows of its steps.
    """
    with tf.device(run.config.variables_device()):
        global_step = tf.train.get_or_create_global_step()
    batches, wait_secs = build_inputs(options, run, classifier)
    with tf.device(run.config.optimizer_device()):
        rate = training.build_learning_rate(
            options,
            global_step,
            run.steps_per_epoch,
            max_steps=run.max_steps,
            update_batch_size=run.update_batch_size,
        )
        optimizer = training.build_optimizer(rate, options)
        summaries = [tf.summary.scalar("learning_rate", rate, collections=[])]
    update_ops = []
    if options.moving_average_decay is not None:
        update_ops = [training.moving_average_update(options.moving_average_decay, global_step)]
    model = model_deploy.deploy(
        run.config,
        model_deploy.random_by_step(classifier.add_losses),
        [batches],
        optimizer=optimizer,
        update_ops=update_ops,
        summaries=summaries,
        clip_norm=options.clip_norm,
        variables_to_train=lambda: training.variables_to_train(options.trainable_scopes),
        asynchronous=options.asynchronous,
        # In an elastic run all that are there make each update.
        replicas_to_aggregate=None if run.config.global_parts else options.num_aggregated,
    )
    return model, {
        "learning_rate": rate,
        "wait_secs": wait_secs,
        "images_per_step": run.images_per_step,
    }


def build_inputs(
    options: TrainOptions, run: Run, classifier: training.Classifier
) -> tuple[Iterator[Any], Any]:
    """Builds the batches of all clones; for asynchronous ones a pipeline each.

    Returns:
      An iterator that `next` advances by a batch, and how long a step has waited: a tensor, or
      one for each asynchronous clone.
    """
    parts = [run.config.input_arguments()]
    if options.asynchronous:
        parts = arguments_of_clones(run.config)
    # Where all make the same steps, the batches follow from the step; else each counts its own.
    follow_step = not options.asynchronous and (
        run.config.num_replicas == 1 or options.all_reduce or options.sync_replicas
    )
    augmentation = inputs.Augmentation(**options.part(inputs.Augmentation))
    pipelines = [
        classifier.train_batches(
            run.dataset,
            batch_size=run.batch_size,
            seed=options.seed,
            shuffle_block=options.shuffle_block,
            fast_decode=options.fast_decode,
            augmentation=augmentation,
            position=model_deploy.batches_taken(run.config) if follow_step else None,
            **arguments,
        )
        for arguments in parts
    ]
    if not options.asynchronous:
        return pipelines[0], pipelines[0].wait_secs
    batches = (next(each) for each in pipelines for _ in range(run.config.accumulate_steps))
    return batches, [each.wait_secs for each in pipelines]


def arguments_of_clones(config: model_deploy.DeploymentConfig) -> list[dict[str, Any]]:
    """What `train_batches` takes for each clone that goes at its own pace: a shard of its own."""
    shared, count = config.input_arguments(), config.accumulate_steps
    return [
        shared
        | {
            "num_clones": count,
            "num_shards": shared["num_shards"] * config.num_clones,
            "shard_index": shared["shard_index"] * config.num_clones + clone,
            "clone_devices": shared["clone_devices"][clone * count : (clone + 1) * count],
        }
        for clone in range(config.num_clones)
    ]


def run_task(options: TrainOptions) -> float | None:
    """Does the part of this process in its cluster; without one, trains by itself.

    Reads the environment.

    Raises:
      ValueError: for a setting that breaks a rule.
      OSError: if the train_dir cannot be written, or other tasks are missing.
      SystemExit: in a parameter server, once the run has ended.
    """
    if os.environ.get(WORLD_FILE):
        servers = elastic.servers_of(os.environ)
        return train_in_worlds(options, elastic.Member.of(os.environ), servers)
    place = training.join_cluster(
        os.environ,
        options,
        task=options.task,
        master=options.master,
        num_ps_tasks=options.num_ps_tasks,
    )
    if place.cluster is not None:
        options = dataclasses.replace(
            options,
            task=place.cluster.task_id,
            task_id=None,
            job_name=None,
            worker_replicas=len(place.cluster.workers),
            num_ps_tasks=len(place.cluster.ps),
        )
    flags = {"num_replicas": "worker_replicas"}
    if options.worker_hosts:
        workers = {"num_replicas": "worker_hosts", "worker_replicas": "worker_hosts"}
        flags = {"num_ps_tasks": "ps_hosts", **workers}
    with named_as(**flags):
        return train(options, place)


def train(options: TrainOptions, place: training.Place | None = None) -> float | None:
    """Trains and evaluates; returns the test accuracy, None where there is no test split.

    Args:
      options: the settings.
      place: that of this process in its cluster; by default it is on its own.

    Raises:
      ValueError: for a setting that breaks a rule.
      OSError: if the train_dir cannot be written.
    """
    run, classifier = prepare(options, checks_start=options.task == 0)
    with evaluations_of(options, run, classifier) as evaluations:
        place = place or training.Place(options.master)
        result = train_model(options, run, classifier, evaluations, place)
        if result.total_loss is None:
            print(f"nothing left to train: {options.train_dir} is at step {result.global_step}")
        return None if evaluations is None else evaluate(options, run, evaluations)


def train_model(
    options: TrainOptions,
    run: Run,
    classifier: training.Classifier,
    evaluations: Evaluations | None,
    place: training.Place,
) -> training.TrainResult:
    """Builds the graph and makes all steps."""
    is_chief = options.task == 0
    with tf.Graph().as_default():
        tf.set_random_seed(options.seed)
        model, shown = build(options, run, classifier)
        if is_chief:
            training.fitting_checkpoint(options.train_dir, options.resume)
        announce(options, run, model)
        init_fn = restore_fn(options) if is_chief else None
        if is_chief:
            note_settings(options, run)
        result = model_deploy.train(
            model,
            options.train_dir,
            max_steps=run.max_steps,
            is_chief=is_chief,
            place=place,
            init_fn=init_fn,
            evaluate=None if evaluations is None else evaluations.scores,
            **shown,
            **options.part(training.LoopOptions),
        )
        if is_chief and options.export_keras is not None:
            export_keras(options, options.export_keras)
        return result


def note_settings(options: TrainOptions, run: Run) -> None:
    """Writes the settings of the run into its folder, for other commands and for TensorBoard.

    To be called when nothing else can be refused: `training.fitting_checkpoint` has found that the
    checkpoint in the folder is one of this model, and `restore_fn` that another one fits.  So the
    settings of another run stay as they are, and a refused one leaves none.
    """
    # With the step at which it will end: who watches the run wants to know.
    resolved = dataclasses.replace(options, max_number_of_steps=run.max_steps)
    write_options(resolved, options.train_dir)
    show_options(resolved)


def announce(options: TrainOptions, run: Run, model: model_deploy.DeployedModel) -> None:
    """Says what has been built."""
    print_banner(options, run)
    if options.describe:
        print(model_deploy.describe(model))
        for held in inputs.held_in(tf.get_default_graph()):
            print(held)
    elif options.xla:
        print(model_deploy.describe(model).compilation, flush=True)
    if options.describe_picture is not None:
        model_deploy.draw_deployment(model_deploy.describe(model), options.describe_picture)


def train_in_worlds(
    options: TrainOptions, member: elastic.Member, servers: Cluster | None = None
) -> float | None:
    """Trains as a worker of an elastic run, whose others may be lost and get company.

    Args:
      options: the settings.
      member: this worker.
      servers: with parameter servers what `elastic.servers_of` gave.

    Returns:
      The test accuracy, of the chief of those that are there at the end; else None.

    Raises:
      ValueError: for a setting that breaks a rule.
      OSError: if the train_dir cannot be written, or too few workers are there.
    """
    first = member.first_world(options.start_timeout)
    options = of_all_workers(options, first.max_workers, servers)
    with named_as(num_replicas="max_workers", worker_replicas="max_workers"):
        # Those who do in `train_elastic`, as there is time for more errors before that.
        run, classifier = prepare(options, checks_start=member.checks_start(first, servers))
    built, noted = itertools.count(), itertools.count()
    with contextlib.ExitStack() as stack:
        # Whoever is the chief for the time being evaluates, so nobody builds one before.
        evaluations = functools.cache(
            lambda: stack.enter_context(evaluations_of(options, run, classifier))
        )

        def scores(checkpoint: str) -> dict[str, float]:
            found = evaluations()
            return {} if found is None else found.scores(checkpoint)

        def build_for(config: model_deploy.DeploymentConfig) -> elastic.ElasticModel:
            tf.set_random_seed(options.seed)
            here = run._replace(config=config)
            model, arguments = build(options, here, classifier)
            if config.replica_id == 0:
                first_time = next(noted) == 0  # a chief before may have been lost before it could
                if first_time:
                    resume = training.resume_under_way(options.train_dir, options.resume)
                    training.fitting_checkpoint(options.train_dir, resume)
                arguments["init_fn"] = restore_fn(options)
                if first_time:
                    note_settings(options, run)
            if next(built) == 0:
                announce(options, here, model)
            return elastic.ElasticModel(model, arguments)

        result = elastic.train_elastic(
            build_for,
            dataclasses.replace(
                run.config, num_replicas=1, num_ps_tasks=0, all_reduce=False, copy_clones=False
            ),
            options.train_dir,
            member=member,
            servers=servers,
            max_steps=run.max_steps,
            start_timeout=options.start_timeout,
            evaluate=None if run.held_out is None else scores,
            **options.part(training.LoopOptions),
        )
        last = member.world()
        if last is None or last.chief != member.worker:
            return None
        if result.total_loss is None:
            print(f"nothing left to train: {options.train_dir} is at step {result.global_step}")
        found = evaluations()
        return None if found is None else evaluate(options, run, found)


def of_all_workers(
    options: TrainOptions, max_workers: int, servers: Cluster | None
) -> TrainOptions:
    """The settings of the whole: the batch, the rate and the epochs are those of all workers.

    Args:
      options: the settings as given; `options.yaml` of such a run has those of the whole.
      max_workers: how many there may be.
      servers: the cluster of the parameter servers; None for all-reduce.

    Raises:
      ValueError: naming a field that such a run has no use for, and its value.
    """
    num_ps_tasks = 0 if servers is None else len(servers.ps_hosts)
    own: dict[str, Any] = {"worker_replicas": max_workers, "num_ps_tasks": num_ps_tasks}
    if servers is not None:
        own["sync_replicas"] = True
    given = {name for name, value in own.items() if getattr(options, name) == value}
    check_defaults(options, {*NOT_ELASTIC, "worker_replicas"} - given)
    return dataclasses.replace(options, all_reduce=servers is None, **own)


def check_defaults(options: TrainOptions, names: Collection[str]) -> None:
    """Checks that fields which an elastic run has no use for have their defaults.

    Raises:
      ValueError: naming the first one that has not, its default and its value.
    """
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if field.name in names and value != field.default:
            raise ValueError(
                f"{field.name} must be {field.default!r} for an elastic run, got {value!r}"
            )


def restore_fn(options: TrainOptions) -> Callable[[Any], None] | None:
    """What restores the start of fine-tuning: from a checkpoint, or from a file of Keras."""
    if keras_lib.is_weights_file(options.checkpoint_path or ""):
        with named_as(path="checkpoint_path"):
            return keras_lib.restore_fn(options, keras_networks.built_model())
    return training.restore_fn(options)


def export_keras(options: TrainOptions, path: str) -> None:
    """Writes the newest checkpoint, or its moving averages, as a file of Keras."""
    averages = options.moving_average_decay is not None
    model = keras_networks.built_model()
    keras_lib.export_checkpoint(model, options.train_dir, path, use_averages=averages)
    print(f"{options.model_name}: {options.train_dir} -> {path}")


@contextlib.contextmanager
def evaluations_of(
    options: TrainOptions, run: Run, classifier: training.Classifier
) -> Iterator[Evaluations | None]:
    """The chief's evaluations on the test split, or else the validation split; None without."""
    if options.task != 0:
        yield None
        return
    if run.held_out is None:
        if options.eval_every_n_steps is not None:
            raise ValueError(
                "eval_every_n_steps must go with a dataset that has a test or validation split, "
                f"got {options.eval_every_n_steps} with {run.dataset.name}"
            )
        print(f"not evaluated: {run.dataset.name} has no test or validation split")
        yield None
        return
    # One clone, on a GPU as those of the training, or not.
    config = model_deploy.DeploymentConfig(
        clone_on_cpu=run.config.clone_on_cpu,
        gpu_memory_fraction=run.config.gpu_memory_fraction,
        tf32=run.config.tf32,
    )
    held_out = training.get_dataset(options, run.held_out)
    with classifier.evaluator(held_out, config) as evaluator:
        yield Evaluations(evaluator)


def evaluate(options: TrainOptions, run: Run, evaluations: Evaluations) -> float:
    """Evaluates the newest checkpoint."""
    found = evaluations.of_newest(options.train_dir)
    print(
        f"{run.held_out} accuracy at step {found.global_step}: {found.accuracy:.4f} "
        f"({found.examples} images)"
    )
    show_confusion(options, run, found)
    return found.accuracy


def show_options(options: TrainOptions) -> None:
    """Gives TensorBoard the settings, as a text and in its table of runs."""
    board = training.Board(options.train_dir, suffix=".options")
    board.add_settings(dataclasses.asdict(options))
    board.close()


def show_confusion(options: TrainOptions, run: Run, found: training.Evaluation) -> None:
    """Gives TensorBoard the confusion matrix of an evaluation, unless there are too many classes.

    The network's classes are those of the dataset without the first `labels_offset`.
    """
    names = run.dataset.class_names[options.labels_offset :]
    if len(names) > MOST_CLASSES_SHOWN:
        return
    title = f"{run.held_out} accuracy {found.accuracy:.4f} at step {found.global_step}"
    board = training.Board(options.train_dir, suffix=".evaluation")
    picture = training.confusion_png(found.confusion, names, title)
    board.add_picture("evaluation/confusion_matrix", picture, found.global_step)
    board.close()


def print_banner(options: TrainOptions, run: Run) -> None:
    """Prints what is about to be trained, on what.

    Reads the collection `TRAINABLE_VARIABLES`.
    """
    if run.config.clone_on_cpu and not options.clone_on_cpu:
        print("no GPU is visible: the clones run on the CPU (as with --clone_on_cpu)")
    devices = [run.config.clone_device(i) for i in range(run.config.num_clones)]
    steps = run.config.accumulate_steps
    accumulated = f" x {steps} accumulated (accumulate_steps)" if steps > 1 else ""
    by = f", added up by {training.added_by(run.config)}" if run.config.all_reduce else ""
    wire = ""
    if run.config.wire_precision != "float32":
        wire = f"{run.config.wire_precision} between processes (wire_precision)\n"
    print(
        f"{options.model_name} on {run.dataset.name} ({run.dataset.num_examples} images, "
        f"{run.dataset.num_classes} classes)\n"
        f"{run.config.num_clones} clone(s) on {', '.join(sorted(set(devices)))}, "
        f"{run.config.num_replicas} replica(s), {run.config.num_ps_tasks} ps; "
        f"{training.way_to_train(options)}{by}\n"
        f"{wire}"
        f"batch size {run.batch_size} per clone{accumulated}, {run.update_batch_size} global; "
        f"{run.steps_per_epoch} steps per epoch, up to step {run.max_steps}\n"
        f"{options.optimizer}, {training.learning_rate_note(options, run.update_batch_size)}; "
        f"checkpoints in {options.train_dir}",
        flush=True,
    )
    if run.config.precision != "float32":
        scale = run.config.scales_losses_by
        scaled = f"; loss scale {scale}" if scale is not None else ""
        print(f"convolutions and products in {run.config.precision}{scaled}", flush=True)
    if run.config.batch_norm_clones > 1:
        print(
            f"batch norms over {run.config.batch_norm_clones} clones (sync_batch_norm)", flush=True
        )
    trained = training.variables_to_train(options.trainable_scopes)
    note = training.weight_decay_note(options, trained, options.weight_decay)
    if note is not None:
        print(note, flush=True)


def main(argv: list[str]) -> int:
    """Runs the command; a user's mistake is one line and exit code 1 or 2."""
    return run_command(argv, TrainOptions, run_task, __doc__)


def run() -> None:
    """The command `train_image_classifier`."""
    end_process(main(sys.argv))


if __name__ == "__main__":
    run()
