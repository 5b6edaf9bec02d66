# SPDX-License-Identifier: GPL-3.0-or-later
"""PERSIA's example: its settings, its data and the agreement between trainers and loaders (no PERSIA, no torch needed)."""

import gzip
import importlib
import json
import math
import sys
import tracemalloc
import typing as t
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

EXAMPLE = Path(__file__).resolve().parents[3] / "roles" / "persia" / "files" / "example"
# In a pod the files lie beside each other in the folder that Python was started with.
sys.path.insert(0, str(EXAMPLE))
settings, dataset, metrics, exchange = (importlib.import_module(name) for name in ("settings", "dataset", "metrics", "exchange"))
sys.path.remove(str(EXAMPLE))

COLUMNS = "city,age,bought\n"


@pytest.fixture
def csv(tmp_path: Path) -> Path:
    path = tmp_path / "data.csv"
    rows = "".join(f"{'abc'[number % 3]},{20 + number},{number % 2}\n" for number in range(60))
    path.write_text(COLUMNS + rows)
    return path


def read(path: Path, **more: str) -> t.Any:
    environ = {"MUSTER_DATA": str(path), "MUSTER_LABEL_COLUMN": "bought", "MUSTER_ID_COLUMNS": "city"}
    return settings.read_settings({**environ, "MUSTER_DENSE_COLUMNS": "age", "MUSTER_BATCH_SIZE": "4", **more})


def test_the_defaults_are_those_of_the_data_beside_the_programs() -> None:
    found = settings.read_settings({})
    assert (found.data, found.label_column, found.epochs) == (str(EXAMPLE / "fair.csv.gz"), "affairs", 10)
    assert found.label_rule.matches("0.111")
    assert not found.label_rule.matches("0")


@pytest.mark.parametrize(
    ("rule", "yes", "no"), [("> 0", "0.5", "0"), (">=3", "3", "2.9"), ("== yes", "yes", "no"), ("== 1", "1.0", "2"), ("!= no", "yes", "no")]
)
def test_label_rules(rule: str, yes: str, no: str) -> None:
    parsed = settings.LabelRule.parse(rule)
    assert parsed.matches(yes)
    assert not parsed.matches(no)


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"MUSTER_EPOCHS": "ten"}, "MUSTER_EPOCHS='ten' is not a number"),
        ({"MUSTER_BATCH_SIZE": "70000"}, "MUSTER_BATCH_SIZE=70000 is out of range"),
        ({"MUSTER_HOLDOUT": "1"}, "MUSTER_HOLDOUT=1 is out of range"),
        ({"MUSTER_LABEL_RULE": "positive"}, "is not a rule"),
        ({"MUSTER_ID_COLUMNS": ""}, "MUSTER_ID_COLUMNS is empty"),
        ({"MUSTER_ID_COLUMNS": "city,city"}, "names a column twice"),
        ({"MUSTER_DENSE_COLUMNS": "city"}, "city is used twice"),
        ({"MUSTER_DENSE_COLUMNS": "bought"}, "bought is used twice"),
    ],
)
def test_a_bad_setting_is_named(csv: Path, environ: dict[str, str], message: str) -> None:
    with pytest.raises(settings.SettingsError, match=message):
        read(csv, **environ)


@pytest.mark.parametrize(
    ("text", "environ", "message"),
    [
        (None, {"MUSTER_DATA": "/nowhere.csv"}, "cannot read /nowhere.csv"),
        (None, {"MUSTER_ID_COLUMNS": "town"}, "has no column town; it has city, age, bought"),
        (None, {"MUSTER_DENSE_COLUMNS": "city", "MUSTER_ID_COLUMNS": "age"}, "line 2: city='a' is not a number"),
        (None, {"MUSTER_LABEL_RULE": "> 5"}, "all labels are the same"),
        (COLUMNS + "a,20\n" * 20, {}, "line 2: 2 values for 3 columns"),
        (COLUMNS + "a,20,1\n", {}, "has 1 rows"),
        (COLUMNS + "a,nan,1\n" * 20, {}, "line 2: age='nan' is not a number"),
        (COLUMNS + "a,20,maybe\n" * 20, {}, "bought='maybe' is not a number"),
    ],
)
def test_bad_data_is_named(csv: Path, text: str | None, environ: dict[str, str], message: str) -> None:
    if text is not None:
        csv.write_text(text)
    with pytest.raises(settings.SettingsError, match=message):
        dataset.load(read(csv, **environ))


def test_a_packed_file_is_read_as_it_is_unpacked(csv: Path, tmp_path: Path) -> None:
    packed = tmp_path / "data.csv.gz"
    packed.write_bytes(gzip.compress(csv.read_bytes()))
    one, other = dataset.load(read(csv)), dataset.load(read(packed))
    assert other.rows([59, 0, 3]) == one.rows([59, 0, 3])


def test_a_packed_file_that_is_cut_off_is_named(csv: Path, tmp_path: Path) -> None:
    packed = tmp_path / "cut.csv.gz"
    packed.write_bytes(gzip.compress(csv.read_bytes())[:-20])
    with pytest.raises(settings.SettingsError, match=r"cannot read .*cut\.csv\.gz: .*; set MUSTER_DATA to a CSV file in the pod"):
        dataset.load(read(packed))


def test_an_id_column_without_a_slot_is_named(csv: Path) -> None:
    config = {"slots_config": {"town": {"dim": 8}}}
    with pytest.raises(settings.SettingsError, match="no slot for the ID column city"):
        settings.check_slots(read(csv), config, "embedding_config.yml")
    assert settings.check_slots(read(csv), {"slots_config": {"city": {"dim": 8}}}, "x") == {"city": 8}


def test_data_is_split_the_same_way_in_every_process(csv: Path) -> None:
    one, other = dataset.load(read(csv)), dataset.load(read(csv))
    assert one == other
    assert sorted([*one.train, *one.held_out]) == list(range(60))
    assert len(one.held_out) == 12
    assert one.rows([0])[0].ids == one.rows([3])[0].ids == [[dataset.stable_id("city", "a")]]
    assert dataset.stable_id("city", "a") != dataset.stable_id("town", "a")
    train_ages = [row.dense[0] for row in one.rows(one.train)]
    assert abs(sum(train_ages)) < 1e-6, "standardised by the training rows alone"
    assert sum(age**2 for age in train_ages) == pytest.approx(len(train_ages))


def test_rows_are_read_where_they_are(csv: Path) -> None:
    """Quotes, several lines in a value, empty lines and ends of lines as Windows writes them."""
    csv.write_bytes(csv.read_bytes().replace(b"a,20,0", b'\r\n"a,\nb",20,0\r\n').replace(b"a,23,", "\u00e4,23,".encode()))
    data = dataset.load(read(csv))
    numbers = [3, 0, 59, 1]
    ages = [row.dense[0] for row in data.rows(numbers)]
    mean, spread = data.scales[0]
    assert [round(age * spread + mean) for age in ages] == [23, 20, 79, 21]
    assert [row.label for row in data.rows(numbers)] == [1.0, 0.0, 1.0, 1.0]
    assert data.rows([3])[0].ids == [[dataset.stable_id("city", "\u00e4")]]
    assert data.rows([0])[0].ids == [[dataset.stable_id("city", "a,\nb")]]


def test_what_is_in_memory_does_not_grow_with_the_rows_but_by_their_number(csv: Path) -> None:
    csv.write_text(COLUMNS + "".join(f"{'x' * 2000},{20 + number},{number % 2}\n" for number in range(500)))
    tracemalloc.start()
    data = dataset.load(read(csv))
    assert tracemalloc.get_traced_memory()[0] < 200 * 500, "a tenth of the file"
    tracemalloc.stop()
    assert len(data.offsets) == 500


def test_an_id_column_may_have_several_values_or_none(csv: Path) -> None:
    text = csv.read_text().replace("\na,20,", "\n b ;a,20,").replace("\nb,21,", "\n;,21,")
    csv.write_text(text)
    several = dataset.load(read(csv, MUSTER_ID_SEPARATOR=";"))
    of_a, of_b, of_c = (dataset.stable_id("city", value) for value in "abc")
    assert [row.ids for row in several.rows(range(4))] == [[[of_b, of_a]], [[]], [[of_c]], [[of_a]]]
    assert dataset.load(read(csv)).rows([0])[0].ids == [[dataset.stable_id("city", "b ;a")]]
    assert read(csv).fingerprint() != read(csv, MUSTER_ID_SEPARATOR=";").fingerprint()


def test_every_epoch_has_an_order_of_its_own() -> None:
    rows = list(range(50))
    assert dataset.epoch_order(rows, 7, 1) == dataset.epoch_order(rows, 7, 1)
    assert dataset.epoch_order(rows, 7, 1) != dataset.epoch_order(rows, 7, 2)
    assert sorted(dataset.epoch_order(rows, 7, 3)) == rows


@given(rows=st.integers(6 * 7 * 30, 5000), world=st.integers(1, 6), loaders=st.integers(1, 7), size=st.integers(1, 30))
def test_each_rank_gets_the_same_number_of_batches(rows: int, world: int, loaders: int, size: int) -> None:
    """As PERSIA deals them out: the k-th batch of a loader is number k * loaders + loader, for rank number % world."""
    plan = dataset.plan(rows, settings.Settings(batch_size=size, steps_per_request=9), world, loaders)
    sent, seen = Counter[int](), []
    for first, count in plan.requests():
        ranks = Counter[int]()
        for loader in range(loaders):
            for batch in dataset.share(first, count, loader, loaders):
                ranks[(sent[loader] * loaders + loader) % world] += 1
                sent[loader] += 1
                seen.append(batch)
        assert set(ranks.values()) == {count // world}
    assert sorted(seen) == list(range(plan.steps * world))
    assert plan.steps * world * size <= rows


def test_too_few_rows_say_so() -> None:
    with pytest.raises(settings.SettingsError, match="too few for 4 trainers, 3 data loaders"):
        dataset.plan(100, settings.Settings(batch_size=64), 4, 3)


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.3, 0.4]), st.booleans()), min_size=2, max_size=40))
def test_auc_counts_pairs(pairs: list[tuple[float, bool]]) -> None:
    scores, labels = [score for score, _label in pairs], [float(label) for _score, label in pairs]
    wins = [1.0 if yes > no else 0.5 if yes == no else 0.0 for yes, is_yes in pairs if is_yes for no, is_no in pairs if not is_no]
    found = metrics.auc(scores, labels)
    assert math.isnan(found) if not wins else found == pytest.approx(sum(wins) / len(wins))


def test_log_loss() -> None:
    assert metrics.log_loss([0.5, 0.5], [0.0, 1.0]) == pytest.approx(math.log(2))
    assert metrics.log_loss([1.0], [0.0]) < 20


class TestExchange:
    @pytest.fixture
    def files(self, tmp_path: Path) -> t.Any:
        found = exchange.Exchange(str(tmp_path / "run"))
        found.prepare()
        return found

    def test_loaders_are_ready_when_all_of_them_said_so(self, files: t.Any) -> None:
        assert files.loaders_ready() is None
        files.announce(0, 2)
        assert files.loaders_ready() is None
        files.announce(1, 2)
        assert files.loaders_ready() == 2
        files.ask(exchange.Request("a", 0, 0, 0, 8, 1, 2))
        files.forget()
        assert files.loaders_ready() is None
        assert files.request() is None

    def test_a_request_is_read_as_it_was_asked(self, files: t.Any) -> None:
        assert files.request() is None
        asked = exchange.Request(exchange.new_attempt(), 3, 1, 0, 8, 2, 1)
        files.ask(asked)
        assert files.request() == asked
        assert asked.tag(5).decode() == f"{asked.attempt}/3/5"

    def test_what_is_lost_is_asked_for_again_unless_all_went_on(self, files: t.Any) -> None:
        first, second = (exchange.Request("a", number, 0, 0, 8, 1, 1) for number in (0, 1))
        files.ask(first)
        files.ask_again(first)
        files.ask_again(first)
        assert files.request().repeat == 2
        files.ask(second)
        files.ask_again(first)
        assert files.request() == second

    def test_the_state_is_whole_or_the_old_one(self, files: t.Any) -> None:
        assert files.state() == {}
        exchange.write_json(files.state_file, {"epoch": 2})
        assert not files.finished(3)
        assert files.finished(2)
        assert [path.name for path in files.run_dir.iterdir() if path.name.startswith(".")] == []
        assert json.loads(files.state_file.read_text()) == {"epoch": 2}

    def test_another_model_has_another_fingerprint(self) -> None:
        assert settings.Settings().fingerprint() == settings.Settings(epochs=99, dense_lr=0.1).fingerprint()
        assert settings.Settings().fingerprint() != settings.Settings(hidden=64).fingerprint()


@given(st.lists(st.integers(0, 30), max_size=20))
def test_ranges_keep_what_is_there_twice(numbers: list[int]) -> None:
    ends = [part.split("-") for part in exchange.ranges(numbers).split(",") if part]
    assert sorted(number for each in ends for number in range(int(each[0]), int(each[-1]) + 1)) == sorted(numbers)
    assert exchange.ranges([2, 0, 1, 7]) == "0-2,7"
