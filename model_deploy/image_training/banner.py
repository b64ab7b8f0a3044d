"""What a run prints before its first step: what it trains, on what, and how."""

import tensorflow.compat.v1 as tf

from model_deploy import DeploymentConfig, inputs, training
from model_deploy.deployment import DeployedModel
from model_deploy.describing import describe, draw_deployment
from model_deploy.image_training.run import PlannedRun
from model_deploy.ways import way_for


def announce(run: PlannedRun, model: DeployedModel) -> None:
    """Prints the banner, and the placement report and picture if the options ask for them."""
    options = run.options
    print_banner(run)
    if options.describe:
        print(describe(model))
        for held in inputs.held_in(tf.get_default_graph()):
            print(held)
    elif options.xla:
        print(describe(model).compilation, flush=True)
    if options.describe_picture is not None:
        draw_deployment(describe(model), options.describe_picture)


def print_banner(run: PlannedRun) -> None:
    """Prints what is about to be trained, on which data and devices.

    Reads the collections `TRAINABLE_VARIABLES` and `GLOBAL_VARIABLES`.
    """
    options = run.options
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
        f"{way_for(run.config)}{by}\n"
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
    if idle := _servers_without_variables(run.config):
        print(f"ps {', '.join(idle)} without variables ({run.config.ps_strategy})", flush=True)
    if run.config.ps_strategy != "round_robin" and run.config.num_ps_tasks == 0:
        print("ps_strategy is not used: there are no parameter servers", flush=True)
    trained = training.variables_to_train(options.trainable_scopes)
    note = training.weight_decay_note(options, trained, options.weight_decay)
    if note is not None:
        print(note, flush=True)


def _servers_without_variables(config: DeploymentConfig) -> list[str]:
    """Returns the numbers of the parameter servers that have no variable."""
    devices = {each.device for each in tf.global_variables()}
    specs = [tf.DeviceSpec.from_string(each) for each in devices]
    used = {spec.task for spec in specs if spec.job == config.ps_job_name}
    return [str(task) for task in range(config.num_ps_tasks) if task not in used]
