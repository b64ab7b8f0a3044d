"""What TensorBoard gets of a run of `train_image_classifier`."""

import pytest
import tensorflow.compat.v1 as tf

import train_image_classifier


@pytest.mark.slow
@pytest.mark.one_mode
def test_options_images_and_confusion_matrix(tmp_path):
    """Settings, eight images of 28 x 28, grouped numbers and the picture of the evaluation."""
    arguments = [f"--train_dir={tmp_path}", "--max_number_of_steps=2", "--clone_on_cpu"]
    assert train_image_classifier.main(["train", *arguments, "--num_clones=2"]) == 0
    values = {
        value.tag: value
        for path in tmp_path.glob("events.out.tfevents.*")
        for event in tf.train.summary_iterator(str(path))
        for value in event.summary.value
    }
    assert b"| num_clones | 2 |" in values["options"].tensor.string_val[0]
    assert "_hparams_/session_start_info" in values
    shown = [values[f"clone_0/inputs/image/{i}"].image for i in range(8)]
    assert {(image.height, image.width) for image in shown} == {(28, 28)}
    assert {"losses/total", "rates/learning_rate", "throughput/images_per_sec"} <= set(values)
    picture = values["evaluation/confusion_matrix"].image.encoded_image_string
    assert picture.startswith(b"\x89PNG")
