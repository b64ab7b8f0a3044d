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
    "tensorflow.contrib.seq2seq": ("2.0", "use tf.nn.dynamic_rnn and tf.while_loop"),
    **dict.fromkeys(
        (
            "tensorflow.contrib.seq2seq.BahdanauMonotonicAttention",
            "tensorflow.contrib.seq2seq.LuongMonotonicAttention",
            "tensorflow.contrib.seq2seq.monotonic_attention",
        ),
        ("2.0", "use tf.contrib.seq2seq.BahdanauAttention or LuongAttention"),
    ),
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
    "tensorflow.contrib.tpu": ("2.0", "use tf.tpu"),
    "tensorflow.contrib.summary": ("2.0", "use tf.summary"),
    "tensorflow.contrib.eager": ("2.0", "eager execution is TensorFlow 2's own"),
    "tensorflow.contrib.distribute": ("2.0", "use model_deploy.deploy, or tf.distribute"),
    "tensorflow.contrib.tensorrt": ("2.0", "use tensorflow.python.compiler.tensorrt"),
    "tensorflow.contrib.crf": ("2.0", "use tf.contrib.crf.crf_log_likelihood and crf_decode"),
    "tensorflow.contrib.image": ("2.0", "use tf.image"),
    "tensorflow.contrib.nn": ("2.0", "use tf.nn"),
    "tensorflow.contrib.opt": ("2.0", "use an optimizer of tf.train"),
    **dict.fromkeys(
        (
            "tensorflow.contrib.opt.AdamWOptimizer",
            "tensorflow.contrib.opt.DecoupledWeightDecayExtension",
            "tensorflow.contrib.opt.MomentumWOptimizer",
            "tensorflow.contrib.opt.extend_with_decoupled_weight_decay",
        ),
        ("2.0", "use model_deploy.optimization.AdamWOptimizer, whose decay follows the rate"),
    ),
    "tensorflow.contrib.opt.LARSOptimizer": ("2.0", "use model_deploy.optimization.LARSOptimizer"),
    "tensorflow.contrib.opt.ScipyOptimizerInterface": ("2.0", "use scipy.optimize.minimize"),
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
