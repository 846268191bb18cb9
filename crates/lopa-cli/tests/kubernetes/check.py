"""Manifests fit their schemas, strictly: no key that Kubernetes would ignore; and the program takes their arguments."""

import copy
import os
import subprocess
import sys

import kubernetes_validate
import yaml
from kubeflow_trainer_api import models


def known(value, model):
    """What a model of Kubeflow Trainer kept must be all that was written."""
    kept = model.from_dict(copy.deepcopy(value)).to_dict()
    same(value, kept, model.__name__)


def same(written, kept, place):
    if isinstance(written, dict):
        for key, value in written.items():
            assert isinstance(kept, dict) and key in kept, f"{place} has no key `{key}`"
            same(value, kept[key], f"{place}.{key}")
    elif isinstance(written, list):
        assert len(written) == len(kept), place
        for at, (one, other) in enumerate(zip(written, kept)):
            same(one, other, f"{place}[{at}]")
    else:
        assert str(written) == str(kept), f"{place}: {written} became {kept}"


TRAINER = {
    "TrainingRuntime": models.TrainerV1alpha1TrainingRuntime,
    "TrainJob": models.TrainerV1alpha1TrainJob,
}


def check(manifest):
    kind = manifest["kind"]
    if kind in TRAINER:
        known(manifest, TRAINER[kind])
    else:
        kubernetes_validate.validate(manifest, "1.33", strict=True)


def commands(value):
    """The arguments of every container that runs the image of the Dockerfile, or starts lopa."""
    if isinstance(value, dict):
        if value.get("image") == "lopa:latest" and "args" in value:
            yield value["args"]
        if value.get("command", [])[-1:] == ["lopa"]:
            yield value["args"]
        for below in value.values():
            yield from commands(below)
    elif isinstance(value, list):
        for below in value:
            yield from commands(below)


def refused(manifest, change):
    """A planted mistake is found."""
    wrong = copy.deepcopy(manifest)
    change(wrong)
    try:
        check(wrong)
    except Exception:
        return True
    return False


for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        manifests = list(yaml.safe_load_all(file))
    for manifest in manifests:
        check(manifest)
        assert refused(manifest, lambda wrong: wrong["spec"].update(replica=3)), "a wrong key passes"
        assert refused(manifest, lambda wrong: wrong.update(spec=[])), "a wrong type passes"
    lopa, ran = os.environ["LOPA"], 0
    for args in commands(manifests):
        ran += 1
        done = subprocess.run([lopa, args[0], *args[1:], "--help"], capture_output=True, text=True)
        assert done.returncode == 0, f"{path}: {' '.join(args)}\n{done.stderr}"
        for flag in [arg.split("=")[0] for arg in args if arg.startswith("--")]:
            assert flag in done.stdout, f"{path}: `lopa {args[0]}` has no {flag}"
    assert ran or "mpi" in path, path
    print(f"{os.path.basename(path)}: {len(manifests)} objects fit their schemas, {ran} command lines are known")
