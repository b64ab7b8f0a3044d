"""Wide and deep: who earns more than 50,000 a year, as such programs were written in 2019.

The people are made up here, like those of a census.

    python -m model_deploy.tf1 examples/tensorflow_1/wide_deep.py --model_dir=wide_deep
"""

from __future__ import absolute_import, division, print_function

import numpy as np
import tensorflow as tf

tf.app.flags.DEFINE_string("model_dir", "wide_deep", "folder of the run")
tf.app.flags.DEFINE_integer("train_steps", 300, "number of the last step")
tf.app.flags.DEFINE_integer("batch_size", 40, "examples in a batch")
FLAGS = tf.app.flags.FLAGS

EDUCATIONS = ["Bachelors", "HS-grad", "Masters", "Doctorate", "Some-college"]
OCCUPATIONS = ["Craft-repair", "Exec-managerial", "Sales", "Tech-support", "Other-service"]


def make_people(count, seed):
    random = np.random.RandomState(seed)
    people = {
        "age": random.randint(17, 80, count).astype(np.float32),
        "hours_per_week": random.randint(10, 70, count).astype(np.float32),
        "education": random.choice(EDUCATIONS, count),
        "occupation": random.choice(OCCUPATIONS, count),
    }
    studied = np.isin(people["education"], ["Bachelors", "Masters", "Doctorate"])
    manages = people["occupation"] == "Exec-managerial"
    score = (people["age"] - 45) / 15 + (people["hours_per_week"] - 40) / 12
    score += np.where(studied, 1.0, -1.0) + np.where(studied & manages, 2.0, 0.0)
    return people, (score > 0).astype(np.int64)


def make_input_fn(count, seed, training):
    def input_fn():
        dataset = tf.data.Dataset.from_tensor_slices(make_people(count, seed))
        if training:
            dataset = dataset.shuffle(count, seed=seed).repeat()
        return dataset.batch(FLAGS.batch_size)

    return input_fn


def build_columns():
    age = tf.feature_column.numeric_column("age", normalizer_fn=lambda x: (x - 48.0) / 18.0)
    hours = tf.feature_column.numeric_column(
        "hours_per_week", normalizer_fn=lambda x: (x - 40.0) / 17.0
    )
    education = tf.feature_column.categorical_column_with_vocabulary_list("education", EDUCATIONS)
    occupation = tf.feature_column.categorical_column_with_hash_bucket("occupation", 100)
    ages = tf.feature_column.bucketized_column(age, [-1.0, -0.5, 0.0, 0.5, 1.0])
    wide = [
        education,
        occupation,
        ages,
        tf.feature_column.crossed_column(["education", "occupation"], 1000),
        tf.feature_column.crossed_column([ages, "education"], 1000),
    ]
    deep = [
        age,
        hours,
        tf.feature_column.indicator_column(education),
        tf.feature_column.embedding_column(occupation, dimension=8),
    ]
    return wide, deep


def main(unused_argv):
    wide, deep = build_columns()
    model = tf.estimator.DNNLinearCombinedClassifier(
        model_dir=FLAGS.model_dir,
        linear_feature_columns=wide,
        dnn_feature_columns=deep,
        dnn_hidden_units=[50, 25],
        config=tf.estimator.RunConfig(tf_random_seed=1),
    )
    result = tf.estimator.train_and_evaluate(
        model,
        tf.estimator.TrainSpec(make_input_fn(2000, 1, True), max_steps=FLAGS.train_steps),
        tf.estimator.EvalSpec(
            make_input_fn(500, 2, False), steps=None, start_delay_secs=0, throttle_secs=1
        ),
    )
    if result and result[0]:  # not in a cluster, where each task does its part
        print("test accuracy at step %d: %.4f" % (result[0]["global_step"], result[0]["accuracy"]))


if __name__ == "__main__":
    tf.logging.set_verbosity(tf.logging.WARN)
    tf.app.run()
