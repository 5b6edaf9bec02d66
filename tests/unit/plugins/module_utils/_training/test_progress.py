# SPDX-License-Identifier: GPL-3.0-or-later
"""The progress that programs print. Each text was recorded from its program, as the comment beside it says."""

import pytest

from ansible_collections.muster.ml.plugins.module_utils._training.progress import newest, read

BOLD, GREEN, WHITE, END, UP = "\x1b[1m", "\x1b[32m", "\x1b[37m", "\x1b[0m", "\x1b[A"


def stamped(*lines: str) -> str:
    """A log with the times of the kubelet, a line every two seconds."""
    return "".join(f"2026-11-27T08:00:{2 * number:02}.123456789Z {line}\n" for number, line in enumerate(lines))


def keras(step: str, done: int, rest: str) -> str:
    return f"\r{BOLD}{step}{END} {GREEN}{'━' * done}{END}{WHITE}{'━' * (20 - done)}{END} {rest}"


RECORDINGS = {
    # roles/elastic/files/example/train.py, in a pod of the local cluster; epochs of an elastic script count from 0.
    "elastic": (
        stamped(
            'muster.ml/elastic {"event": "rendezvous", "time": 1795272880.1, "round": 0, "nodes": 3, "world_size": 3}',
            'muster.ml/elastic {"event": "start", "time": 1795272880.3, "torch": "1.13.1", "world_size": 3, "epoch": 3, "step": 72}',
            'muster.ml/elastic {"event": "step", "time": 1795272881.1, "world_size": 3, "epoch": 3, "epochs": 10, "step": 90, "steps": 240,'
            ' "loss": 0.3121}',
            'muster.ml/elastic {"event": "step", "time": 1795272883.1, "world_size": 3, "epoch": 4, "epochs": 10, "step": 100,'
            ' "steps": 240, "loss": 0.2312}',
        ),
        "41 %, 28 s left, epoch 5 of 10, step 100 of 240, loss 0.2312, 5 steps/s",
    ),
    # The end of the same.
    "elastic-result": (
        'muster.ml/elastic {"event": "result", "time": 1795272899.1, "world_size": 3, "accuracy": 0.9524, "epochs": 10, "steps": 240}\n',
        "100 %, epoch 10 of 10, step 240 of 240, accuracy 0.9524",
    ),
    # roles/persia/files/example/train.py.
    "persia": (
        stamped(
            "MUSTER attempt=77e03876e364 step=0 time=1795403631.02",
            "MUSTER step=40 steps=160 epoch=1 epochs=10 loss=0.5510",
            "MUSTER epoch=3 loss=0.5457 auc=0.7364 train_loss=0.5322 step=48 seconds=1.9",
        ),
        "30 %, 28 s left, epoch 3 of 10, step 48 of 160, loss 0.5457, auc 0.7364, 4 steps/s",
    ),
    # roles/tpu/files/example/train.py.
    "tpu": (
        stamped(
            '{"event": "start", "time": 1795273000.1, "jax": "0.7.2", "platform": "cpu", "hosts": 2, "step": 0}',
            '{"event": "step", "time": 1795273003.5, "hosts": 2, "step": 10, "steps": 120, "loss": 1.0325}',
            '{"event": "step", "time": 1795273004.5, "hosts": 2, "step": 20, "steps": 120, "loss": 0.4521}',
        ),
        "16 %, 20 s left, step 20 of 120, loss 0.4521, 5 steps/s",
    ),
    # roles/studioml/files/example/train.py, whose output has no times but its own.
    "studioml": (
        '{"experiment": {"epoch": 1, "epochs": 5, "loss": 0.731208, "time": 1795273000.5}}\n'
        '{"experiment": {"epoch": 2, "epochs": 5, "loss": 0.412077, "time": 1795273010.5}}\n'
        '{"experiment": {"epoch": 3, "epochs": 5, "loss": 0.312077, "time": 1795273020.5}}\n',
        "60 %, 20 s left, epoch 3 of 5, loss 0.3121, 0.1 epochs/s",
    ),
    # transformers 5.24.0, ProgressCallback, with an evaluation between; its evaluation has a bar of its own.
    "transformers": (
        f" 33%|███▎      | 10/30 [00:01<00:03,  6.60it/s]\r  0%|          | 0/4 [00:00<?, ?it/s]{UP}\n\r 75%|███████▌  | 3/4 [00:00<00:00,"
        f" 28.88it/s]{UP}\r     \r{UP}{{'eval_loss': '0.61', 'eval_runtime': '0.2', 'epoch': '1'}}\n\r 37%|███▋      | 11/30 [00:01<00:04,"
        "  4.67it/s]\r 40%|████      | 12/30 [00:02<00:03,  5.14it/s]\r     \r{'loss': '0.3466', 'grad_norm': '1.25', 'learning_rate':"
        " '3e-05', 'epoch': '1.2'}\n\r 40%|████      | 12/30 [00:02<00:03,  5.14it/s]",
        "40 %, 3 s left, epoch 1.2, step 12 of 30, loss 0.3466, 5.14 steps/s",
    ),
    # transformers 4, PrinterCallback.
    "transformers-printer": ("{'loss': 0.6931, 'grad_norm': 1.25, 'learning_rate': 4e-05, 'epoch': 0.6}\n", "epoch 0.6, loss 0.6931"),
    # tqdm 4.70.1 with desc and set_postfix.
    "tqdm": (
        "\rtraining:  50%|█████     | 20/40 [00:03<00:03,  6.25it/s, loss=0.5]",
        "50 %, 3 s left, step 20 of 40, loss 0.5, 6.25 steps/s",
    ),
    # PyTorch Lightning 1.0, github.com/Lightning-AI/pytorch-lightning/issues/4225.
    "lightning": (
        "Epoch 0:  22%|██▏       | 4/18 [00:17<01:02,  4.47s/it, loss=9.947, v_num=193315] \n"
        "Epoch 0:  28%|██▊       | 5/18 [00:20<00:53,  4.14s/it, loss=9.850, v_num=193315]\n",
        "53 s of the epoch left, epoch 0, step 5 of 18, loss 9.85, 0.242 steps/s",
    ),
    # PyTorch Lightning in Colab, github.com/Lightning-AI/pytorch-lightning/issues/3866.
    "lightning-narrow": (
        "Epoch 0:  97% 1652/1702 [13:01<00:23,  2.11it/s, loss=0.158, v_num=0, train_loss=0.149]\n",
        "23 s of the epoch left, epoch 0, step 1652 of 1702, loss 0.158, 2.11 steps/s",
    ),
    # Keras 3.15.1, model.fit(verbose=1) into a pipe.
    "keras": (
        "Epoch 1/2\n"
        + keras(" 1/10", 2, f"{BOLD}14s{END} 2s/step - accuracy: 0.4500 - loss: 0.6989")
        + "\b" * 40
        + keras("10/10", 20, f"{BOLD}3s{END} 330ms/step - accuracy: 0.5417 - loss: 0.7062 - val_accuracy: 0.4833 - val_loss: 0.7383\n")
        + "Epoch 2/2\n"
        + keras(" 4/10", 8, f"{BOLD}0s{END} 63ms/step - accuracy: 0.5167 - loss: 0.7156"),
        "70 %, 1 s left, epoch 2 of 2, step 4 of 10, loss 0.7156, accuracy 0.5167, 15.9 steps/s",
    ),
    # Keras 3.15.1, model.fit(verbose=2).
    "keras-lines": (
        "Epoch 1/2\n10/10 - 3s - 330ms/step - accuracy: 0.5417 - loss: 0.7062 - val_accuracy: 0.4833 - val_loss: 0.7383\n",
        "50 %, 3 s left, epoch 1 of 2, step 10 of 10, loss 0.7062, accuracy 0.5417, 3.03 steps/s",
    ),
    # MaxText 0.2.5 on two hosts, each of which trains 64 tokens; it does not print its number of steps.
    "maxtext": (
        "I1128 16:33:27.640318 140622241451072 metric_logger.py:265] completed step: 3, seconds: 0.217, TFLOP/s/device: 0.000,"
        " Tokens/s/device: 295.531, total_weights: 128, loss: 6.001, lm_loss: 6.001, perplexity: 403.768\n"
        "I1128 16:33:27.720264 140622241451072 metric_logger.py:265] completed step: 4, seconds: 0.115, TFLOP/s/device: 0.000,"
        " Tokens/s/device: 556.996, total_weights: 128, loss: 6.000, lm_loss: 6.000, perplexity: 403.522\n"
        "I1128 16:33:27.763330   17463 preemption_sync_manager.cc:202] Shutting down PreemptionSyncManager...\n",
        "step 4, loss 6, 8.7 steps/s",
    ),
    # Megatron-LM, github.com/epfLLM/Megatron-LLM/issues/11.
    "megatron": (
        " iteration      203/  250000 | consumed samples:       207872 | elapsed time per iteration (ms): 140346.9 | learning rate:"
        " 1.522E-05 | global batch size:  1024 | lm loss: 2.383620E+00 | loss scale: 1.0 | grad norm: 0.155 | number of skipped iterations:"
        "   0 | number of nan iterations:   0 |\n",
        "0 %, 405 days 18 h left, step 203 of 250000, loss 2.384, 0.00713 steps/s",
    ),
    # github.com/pytorch/examples at 0221496, imagenet/main.py: the format of its print.
    "imagenet": (
        stamped(
            *(
                f"Epoch: [0][{step}/5005]\tTime 0.401 (0.561)\tData 0.001 (0.151)\tLoss {loss} (7.0210)\tPrec@1 0.000 (0.142)\tPrec@5 0.391"
                for step, loss in ((10, 6.9870), (20, 6.9721), (30, 6.9555))
            )
        ),
        "17 min of the epoch left, epoch 0, step 30 of 5005, loss 6.955, 5 steps/s",
    ),
    # torchvision's references/classification, github.com/fangwei123456/Spike-Element-Wise-ResNet/issues/10.
    "torchvision": (
        "Epoch: [0]  [ 103/5005]  eta: 4:43:31  lr: 0.1  img/s: 13.62830983555788  loss: 6.8536 (6.9458)  acc1: 0.0000 (0.2103)  acc5:"
        " 0.0000 (0.9916)  time: 2.5401  data: 0.0336  max mem: 3524\n",
        "4 h 44 min of the epoch left, epoch 0, step 103 of 5005, loss 6.854",
    ),
    # github.com/pytorch/examples, mnist/main.py.
    "mnist": (
        stamped(
            *(f"Train Epoch: 1 [{n}/60000 ({n // 600}%)]\tLoss: {loss:f}" for n, loss in ((0, 2.329474), (640, 1.425185), (1280, 0.826797)))
        ),
        "3 min of the epoch left, epoch 1, sample 1280 of 60000, loss 0.8268, 320 samples/s",
    ),
}


@pytest.mark.parametrize("program", RECORDINGS)
def test_the_progress_that_a_program_prints(program: str) -> None:
    text, line = RECORDINGS[program]
    assert read(text).line() == line
    assert len(f"Running: {line}") <= 120


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello\n",
        "loss 0.5\n",
        "Epoch\n",
        "{'a': 1}\n",
        "{\n",
        "Loading weights: 50%|█████     | 2/4 [00:01<00:01,  2.00it/s]\n",
        "\x00\ufffd\n",
    ],
)
def test_other_lines_are_no_progress(text: str) -> None:
    assert read(text).line() == ""


def test_an_attempt_that_begins_again_has_a_rate_of_its_own() -> None:
    steps = [stamped(*(f"MUSTER step={step} steps=100 loss=0.5" for step in (10, 90, 15, 20, 30)))]
    assert newest(steps).rate == 5


def test_a_line_with_an_epoch_only_is_no_step() -> None:
    found = read(
        stamped("MUSTER trained attempt=77e03876e364 epoch=7 batches=0-78", *(f"MUSTER step={step} steps=900" for step in (499, 500, 510)))
    )
    assert (found.rate, found.left) == (5, 78)


def test_preparations_and_lines_of_one_moment_have_no_rate() -> None:
    """PERSIA after a restart: where it resumes, and two lines for its first step, 1.7 s later; seen as 46 minutes left of 40 seconds."""
    text = (
        "2026-11-27T08:33:20.1Z MUSTER resume epoch=30 step=2370 checkpoint=step-00002370-da1c\n"
        "2026-11-27T08:33:21.8Z MUSTER attempt=6ac0 step=2370 time=1795768401.80\n"
        "2026-11-27T08:33:21.8Z MUSTER step=2371 steps=3950 epoch=31 epochs=50 loss=0.4547\n"
    )
    assert read(text).line() == "60 %, epoch 31 of 50, step 2371 of 3950, loss 0.4547"


def test_a_loss_that_is_no_number_is_shown() -> None:
    found = read("MUSTER step=3 steps=9 loss=nan\n")
    assert found.line() == "33 %, step 3 of 9, loss nan"
    assert found.result()["metrics"] == {"loss": "nan"}


def test_json_without_spaces_is_read() -> None:
    assert read('{"step":3,"steps":9,"loss":0.5}\n').line() == read('{"step": 3, "steps": 9, "loss": 0.5}\n').line() != ""


def test_the_log_with_the_newest_line_counts() -> None:
    old, new = stamped("MUSTER step=1 steps=4"), stamped("MUSTER step=1 steps=4", "MUSTER step=2 steps=4")
    assert newest([new, old, "hello\n"]).step == 2
    assert newest([]).line() == ""


@pytest.mark.parametrize(
    "line",
    [
        "{'step': 1.2.3, 'loss': 0.1}",
        "{'step': 1e999}",
        "2026-13-45T25:61:61Z {'step': 3}",
        "100%|#| 1/2 [00:01<00:02, 1.2.3it/s]",
        f"Epoch 1/{'9' * 5000}",
        "{'step': 1, 'steps': 1e308}",
        "{'epoch': nan, 'steps': 0}",
        "loss information of {'epoch': 1}",
    ],
)
def test_a_line_that_only_looks_like_progress_breaks_nothing(line: str) -> None:
    """A wait reads the logs of any program; an error here would end the wait for a training that goes on."""
    found = read(f"{line}\n2026-11-27T10:00:00Z {{'step': 7, 'loss': 0.5.}}\n{line}\n2026-11-27T10:00:02Z {{'step': 9, 'loss': 0.5}}")
    assert (found.step, found.metrics.get("loss")) == (9, 0.5)
    assert len(found.line()) < 200
