"""Names of TensorFlow 1 that are nowhere today: since when, and what to use."""

_ESTIMATOR = "use tf.estimator and tf.estimator.experimental"
_TREES = "use sklearn.ensemble.HistGradientBoostingClassifier, or the package ydf"
_TF_DATA = "use tf.data"

# Name, or beginning of names -> the release without it, and what to use.
_GONE: dict[str, tuple[str, str]] = {
    # TensorFlow 1.0 renamed what 0.x had.
    "tensorflow.audio_summary": ("1.0", "use tf.summary.audio"),
    "tensorflow.batch_matmul": ("1.0", "use tf.matmul"),
    "tensorflow.complex_abs": ("1.0", "use tf.abs"),
    "tensorflow.histogram_summary": ("1.0", "use tf.summary.histogram"),
    "tensorflow.image_summary": ("1.0", "use tf.summary.image"),
    "tensorflow.inv": ("1.0", "use tf.reciprocal"),
    "tensorflow.merge_all_summaries": ("1.0", "use tf.summary.merge_all"),
    "tensorflow.merge_summary": ("1.0", "use tf.summary.merge"),
    "tensorflow.mul": ("1.0", "use tf.multiply"),
    "tensorflow.neg": ("1.0", "use tf.negative"),
    "tensorflow.pack": ("1.0", "use tf.stack"),
    "tensorflow.scalar_summary": ("1.0", "use tf.summary.scalar"),
    "tensorflow.select": ("1.0", "use tf.where"),
    "tensorflow.sub": ("1.0", "use tf.subtract"),
    "tensorflow.unpack": ("1.0", "use tf.unstack"),
    "tensorflow.nn.rnn": ("1.0", "use tf.nn.static_rnn"),
    "tensorflow.nn.bidirectional_rnn": ("1.0", "use tf.nn.static_bidirectional_rnn"),
    "tensorflow.nn.seq2seq": ("1.0", "use tf.nn.dynamic_rnn and tf.while_loop"),
    "tensorflow.python.ops.seq2seq": ("1.0", "use tf.nn.dynamic_rnn and tf.while_loop"),
    "tensorflow.train.SummaryWriter": ("1.0", "use tf.summary.FileWriter"),
    # What TensorFlow 2 left out.
    "tensorflow.estimator": ("2.16", "tensorflow_estimator 2.15 does not have it either"),
    **dict.fromkeys(
        (
            "tensorflow.estimator.BoostedTreesClassifier",
            "tensorflow.estimator.BoostedTreesEstimator",
            "tensorflow.estimator.BoostedTreesRegressor",
        ),
        ("2.16", _TREES),
    ),
    "tensorflow.contrib.learn": ("2.0", _ESTIMATOR),
    "tensorflow.contrib.learn.preprocessing": (
        "2.0",
        "use tf.keras.preprocessing.text.Tokenizer, or model_deploy.inputs.read_texts",
    ),
    "tensorflow.contrib.estimator": ("2.0", _ESTIMATOR),
    "tensorflow.contrib.estimator.TowerOptimizer": ("2.0", "use the optimizer without it"),
    "tensorflow.contrib.estimator.replicate_model_fn": (
        "2.0",
        "use RunConfig(train_distribute=model_deploy.DeploymentConfig(num_clones=...))",
    ),
    "tensorflow.contrib.seq2seq": ("2.0", "use tf.nn.dynamic_rnn and tf.while_loop"),
    "tensorflow.contrib.legacy_seq2seq": ("2.0", "use tf.nn.static_rnn"),
    "tensorflow.contrib.data": ("2.0", f"{_TF_DATA} and tf.data.experimental"),
    "tensorflow.contrib.lookup": ("2.0", "use tf.lookup"),
    "tensorflow.contrib.distributions": (
        "2.0",
        "use tf.distributions, or the package tensorflow_probability",
    ),
    "tensorflow.contrib.quantize": (
        "2.0",
        "export the model and use tf.lite.TFLiteConverter.from_saved_model",
    ),
    "tensorflow.contrib.lite": ("2.0", "use tf.lite"),
    "tensorflow.contrib.tpu": ("2.0", "use tf.tpu and tf.estimator.tpu"),
    "tensorflow.contrib.summary": ("2.0", "use tf.summary"),
    "tensorflow.contrib.eager": ("2.0", "eager execution is TensorFlow 2's own"),
    "tensorflow.contrib.distribute": ("2.0", "use model_deploy.deploy, or tf.distribute"),
    "tensorflow.contrib.tensorrt": ("2.0", "use tensorflow.python.compiler.tensorrt"),
    "tensorflow.contrib.crf": ("2.0", "use tf.contrib.crf.crf_log_likelihood and crf_decode"),
    "tensorflow.contrib.image": ("2.0", "use tf.image"),
    "tensorflow.contrib.nn": ("2.0", "use tf.nn"),
    "tensorflow.contrib.opt": ("2.0", "use an optimizer of tf.train"),
    "tensorflow.contrib.opt.LARSOptimizer": ("2.0", "use model_deploy.optimization.LARSOptimizer"),
    "tensorflow.contrib.opt.ExternalOptimizerInterface": (
        "2.0",
        "use tf.contrib.opt.ScipyOptimizerInterface",
    ),
    "tensorflow.contrib.tfprof": ("2.0", "use tf.profiler"),
    "tensorflow.contrib.cudnn_rnn": ("2.0", "use tf.keras.layers.LSTM or GRU"),
    "tensorflow.contrib.rnn": (
        "2.0",
        "use a cell of tf.nn.rnn_cell, with tf.nn.dynamic_rnn or tf.nn.static_rnn",
    ),
    "tensorflow.contrib.layers": ("2.0", "use tf.feature_column for columns, slim for layers"),
    "tensorflow.contrib.training": ("2.0", _TF_DATA),
    "tensorflow.contrib.metrics": ("2.0", "use tf.metrics"),
    "tensorflow.contrib.framework": ("2.0", "use tf.train or slim"),
    "tensorflow.contrib.slim": ("2.0", "use tf.nn, tf.layers or tf_slim"),
    "tensorflow.contrib": (
        "2.0",
        "TensorFlow 2 has no contrib, and model_deploy not this part of it",
    ),
}

# Part of `tf.contrib` -> what to use in place of names of it that are nowhere.
_PARTS = {
    "all_reduce": "use model_deploy.DeploymentConfig(all_reduce=True)",
    "autograph": "use tf.autograph",
    "batching": "use tf.nondifferentiable_batch_function",
    "bayesflow": "use the package tensorflow_probability",
    "bigtable": "use the package google-cloud-bigtable",
    "boosted_trees": "use the package ydf, or sklearn.ensemble",
    "checkpoint": "use tf.train.Checkpoint",
    "cloud": "use the package google-cloud-bigquery, and tf.data.Dataset.from_generator",
    "cluster_resolver": "use tf.distribute.cluster_resolver, or model_deploy.cluster",
    "compiler": "use tf.xla, or tf.function(jit_compile=True)",
    "constrained_optimization": "use scipy.optimize.minimize",
    "copy_graph": "use tf.train.export_meta_graph and import_meta_graph",
    "decision_trees": "use the package ydf, or sklearn.ensemble",
    "deprecated": "use tf.summary",
    "factorization": "use sklearn.cluster, sklearn.mixture or sklearn.decomposition",
    "feature_column": "use tf.feature_column, and tf.contrib.feature_column.sequence_input_layer",
    "ffmpeg": "use tf.audio.decode_wav",
    "gan": "use nets.dcgan, and two deployments that share variables as examples/dcgan.py does",
    "graph_editor": "use tf.graph_util.import_graph_def; tf.recompute_grad to save memory",
    "grid_rnn": "use tf.nn.rnn_cell",
    "hadoop": "convert the data to TFRecords by tf.python_io.TFRecordWriter",
    "hooks": "use tf.train",
    "input_pipeline": "use tf.data",
    "integrate": "use scipy.integrate.solve_ivp, or the package tensorflow_probability",
    "keras": "use tf.keras",
    "kernel_methods": "use sklearn.kernel_approximation",
    "labeled_tensor": "use tensors without labels",
    "libsvm": "use sklearn.datasets.load_svmlight_file",
    "linear_optimizer": "use tf.train.FtrlOptimizer",
    "losses": "use tf.losses",
    "memory_stats": "use tf.config.experimental.get_memory_info",
    "meta_graph_transform": "use tf.graph_util",
    "mixed_precision": 'use model_deploy.DeploymentConfig(precision="float16")',
    "model_pruning": "use the package tensorflow-model-optimization",
    "nccl": "use model_deploy.DeploymentConfig(all_reduce=True)",
    "optimizer_v2": "use tf.train",
    "periodic_resample": "use tf.nn.depth_to_space",
    "predictor": "use tf.contrib.predictor.from_saved_model",
    "proto": "use tf.io.decode_proto and encode_proto",
    "quantization": "use tf.quantization",
    "recurrent": "use tf.nn.dynamic_rnn, and tf.recompute_grad to save memory",
    "reduce_slice_ops": "use tf.math.segment_sum",
    "remote_fused_graph": "use tf.lite",
    "resampler": "use tf.contrib.image.dense_image_warp, or tf.gather_nd",
    "rpc": "use tf.py_func, and the package grpcio",
    "saved_model": "use tf.saved_model",
    "signal": "use tf.signal",
    "solvers": "use tf.linalg",
    "sparsemax": "use tf.nn.softmax, or compute it by tf.nn.top_k and tf.cumsum",
    "specs": "use tf.contrib.slim",
    "staging": "use tf.data.Dataset.prefetch",
    "stat_summary": "use tf.profiler",
    "stateless": "use tf.random.stateless_uniform and its kin",
    "tensor_forest": "use the package ydf, or sklearn.ensemble",
    "tensorboard": "use the package tensorboard",
    "testing": "use tf.test",
    "text": "use tf.keras.preprocessing.sequence.skipgrams",
    "timeseries": "use tf.nn.dynamic_rnn, or the package statsmodels",
    "util": "use tf.train and tf.graph_util",
}
_GONE |= {f"tensorflow.contrib.{part}": ("2.0", instead) for part, instead in _PARTS.items()}
_GONE["tensorflow.contrib.image.connected_components"] = (
    "2.0",
    "use scipy.ndimage.label in a tf.py_func",
)
for _name in ("rejection_sample", "stratified_sample", "resample_at_rate", "weighted_resample"):
    _GONE[f"tensorflow.contrib.training.{_name}"] = (
        "2.0",
        "use tf.data.Dataset.rejection_resample or sample_from_datasets",
    )


def advice(name: str) -> str:
    """What to say of a name of TensorFlow 1 that is nowhere, such as `tensorflow.contrib.learn`."""
    shown = name.replace("tensorflow.", "tf.", 1)
    known = name
    while known and known not in _GONE:
        known = known.rpartition(".")[0]
    if not known:
        return f"{shown} is in no release of TensorFlow that is known here"
    release, instead = _GONE[known]
    return f"{shown} is gone since TensorFlow {release}: {instead}"
