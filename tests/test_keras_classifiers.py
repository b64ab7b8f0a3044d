"""`--model_name=keras/...` in the scripts: training, evaluation, export and fine-tuning."""

import numpy as np
import pytest
import tensorflow.compat.v1 as tf

import eval_image_classifier
import export_image_classifier
import train_image_classifier
from model_deploy import inputs
from tests.checkpoint_values import checkpoint_values
from tests.keras import few_blocks

NAME = "keras/EfficientNetB0"
FLAGS = [
    *(f"--model_name={NAME}", "--train_image_size=32", "--num_clones=2", "--copy_clones"),
    "--batch_size=8",
]


def train(folder, *flags):
    """The exit code of a run of three steps in a folder."""
    return train_image_classifier.main(
        ["train", f"--train_dir={folder}", "--max_number_of_steps=3", *FLAGS, *flags]
    )


def values(folder):
    """Name -> value of the newest checkpoint."""
    return checkpoint_values(folder)


@pytest.mark.slow
@pytest.mark.one_mode
def test_from_training_to_fine_tuning(tmp_path, monkeypatch, capsys):
    """What is trained is evaluated and exported; its Keras file starts a run that it fits."""
    few_blocks.shorten(monkeypatch, num_kinds=2)
    weights = tmp_path / "new" / "digits.weights.h5"
    assert train(tmp_path / "run", f"--export_keras={weights}") == 0
    [accuracy] = [line for line in capsys.readouterr().out.splitlines() if "accuracy" in line]
    assert eval_image_classifier.main(["eval", f"--train_dir={tmp_path / 'run'}"]) == 0
    assert f"accuracy {accuracy.split()[5]}" in capsys.readouterr().out

    exported = [f"--train_dir={tmp_path / 'run'}", f"--output_dir={tmp_path / 'saved'}"]
    assert export_image_classifier.main(["export", *exported]) == 0
    with tf.Graph().as_default(), tf.Session() as session:
        tf.saved_model.load(session, ["serve"], str(tmp_path / "saved"))
        images = np.full([2, 32, 32, 1], 100.0)
        shares = session.run("probabilities:0", {"input:0": images})
    np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-5)

    scopes = ["--checkpoint_exclude_scopes=predictions", "--trainable_scopes=predictions"]
    scopes.append("--num_clones=1")
    assert train(tmp_path / "tuned", f"--checkpoint_path={weights}", *scopes) == 0
    assert "from " in capsys.readouterr().out
    start, tuned = values(tmp_path / "run"), values(tmp_path / "tuned")
    np.testing.assert_array_equal(tuned["stem_conv/kernel"], start["stem_conv/kernel"])
    assert not np.array_equal(tuned["predictions/kernel"], start["predictions/kernel"])

    # A file that lacks what is not excluded is refused, with the flag that would help.
    other = ("--labels_offset=2", "--num_clones=1")
    assert train(tmp_path / "other", f"--checkpoint_path={weights}", *other) == 1
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("error: checkpoint_path must hold the variables that are not excluded")
    assert "use --checkpoint_exclude_scopes=predictions or --ignore_missing_vars" in error


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        pytest.param(
            ["--model_name=lenet", "--export_keras=a.keras"],
            "export_keras must go with a network keras/..., got a.keras with lenet",
            id="export",
        ),
        pytest.param(
            ["--export_keras=a.h5"], "export_keras must end with .weights.h5 or .keras", id="kind"
        ),
        pytest.param(
            ["--model_name=lenet", "--checkpoint_path=a.weights.h5"],
            "checkpoint_path must go with a network keras/..., got a.weights.h5 with lenet",
            id="checkpoint",
        ),
        pytest.param(
            ["--preprocessing_name=inception"],
            f"preprocessing_name must be that of Keras for {NAME}, which does the rest itself",
            id="preprocessing",
        ),
        pytest.param(
            ["--model_name=keras/LeNet"], "model_name must be one of alexnet_v2, ", id="name"
        ),
    ],
)
def test_flags_are_refused(flags, words, tmp_path, capsys):
    """Settings that do not go together stop the run before it starts."""
    assert train(tmp_path, *flags) in (1, 2)
    assert words in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("channels", [1, 3])
def test_preprocessing(channels):
    """Images are stretched whole for evaluation, mirrored parts for training; 0 to 255 in both."""
    family = inputs.get_preprocessing(NAME)
    assert family.name == "keras"
    image = tf.constant(np.arange(6 * 4 * channels).reshape(6, 4, channels) * 3, tf.uint8)
    seeds = [tf.constant([3, i], tf.int64) for i in range(8)]
    with tf.Session() as session:
        kept, stretched, trained = session.run(
            [
                family.evaluate(image, None, None),
                family.evaluate(image, 12, 8),
                [family.train(image, 6, 4, seed, crop_image=False) for seed in seeds],
            ]
        )
        original = session.run(image)
    np.testing.assert_allclose(kept, original, atol=1e-4)
    assert stretched.shape == (12, 8, channels)
    assert stretched.max() <= 255
    mirrored = [np.allclose(each, original[:, ::-1], atol=1e-3) for each in trained]
    same = [np.allclose(each, original, atol=1e-3) for each in trained]
    assert any(mirrored)
    assert any(same)
    assert all(one != other for one, other in zip(mirrored, same, strict=True))
