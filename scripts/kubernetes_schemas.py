"""Writes `tests/data/kubernetes.json`: schemas of what `model_deploy.launch.kubernetes` prints.

    pip install kubeflow-trainer-api==2.3.0 kubeflow-training==1.9.4 kubernetes-validate==1.37.0
    python scripts/kubernetes_schemas.py

They are made of the models that these projects publish: JobSet v1alpha2 with the pods of
Kubernetes, TFJob of kubeflow.org/v1, and Kubernetes 1.37's own schemas.  Unlike there no field is
allowed that they do not name, so that a misspelled one is found, and descriptions are left out.
"""

import json
import re
from importlib import metadata
from pathlib import Path
from typing import Any

import kubernetes_validate
from kubeflow.training import models
from kubeflow_trainer_api.models.jobset_v1alpha2_job_set import JobsetV1alpha2JobSet

_PACKAGES = ("kubeflow-trainer-api", "kubeflow-training", "kubernetes-validate")
_LEFT_OUT = ("description", "title", "default", "x-kubernetes-group-version-kind", "$schema")


def strict(schema: Any) -> Any:
    """A schema without words, without null, and without fields that it does not name."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "actual_instance" in schema.get("properties", {}):  # a quantity, or a port by name
        return {"type": ["string", "number"]}
    given = [each for each in schema.get("anyOf", []) if each != {"type": "null"}]
    if len(given) == 1:
        return strict(given[0])
    made = {
        key: {name: strict(each) for name, each in value.items()}
        if key in ("properties", "$defs")
        else strict(value)
        for key, value in schema.items()
        if key not in _LEFT_OUT
    }
    if "properties" in made:
        made["additionalProperties"] = False
    return made


def of_swagger(model: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a class that swagger has made; `V1...` of Kubernetes are `definitions`."""
    properties = {}
    for name, kind in model.openapi_types.items():
        properties[model.attribute_map[name]] = _of_type(kind, definitions)
    return {"type": "object", "properties": properties, "additionalProperties": False}


def _of_type(kind: str, definitions: dict[str, Any]) -> dict[str, Any]:
    if match := re.fullmatch(r"dict\(str, (\w+)\)", kind):
        return {"type": "object", "additionalProperties": _of_type(match[1], definitions)}
    if match := re.fullmatch(r"list\[(\w+)\]", kind):
        return {"type": "array", "items": _of_type(match[1], definitions)}
    plain = {"str": "string", "int": "integer", "bool": "boolean", "datetime": "string"}
    if kind in plain:
        return {"type": plain[kind]}
    known = {"V1PodTemplateSpec": "CoreV1PodTemplateSpec", "V1ObjectMeta": "MetaV1ObjectMeta"}
    for short, long in known.items():
        if kind == short:
            name = next(each for each in definitions if each.endswith(long))
            return {"$ref": f"#/$defs/{name}"}
    return of_swagger(getattr(models, kind), definitions) if hasattr(models, kind) else {}


def main() -> None:
    """Writes the file."""
    job_set = strict(JobsetV1alpha2JobSet.model_json_schema(by_alias=True))
    definitions = job_set.pop("$defs")
    schemas = {"JobSet": job_set, "TFJob": of_swagger(models.KubeflowOrgV1TFJob, definitions)}
    folder = Path(kubernetes_validate.__file__).parent
    [folder] = folder.glob("kubernetes-json-schema/v1.37.0-local-strict")
    own = json.loads((folder / "_definitions.json").read_text())["$defs"]
    for kind, name in (
        ("NetworkPolicy", "io.k8s.api.networking.v1.NetworkPolicy"),
        ("PersistentVolumeClaim", "io.k8s.api.core.v1.PersistentVolumeClaim"),
    ):
        _add(name, own, definitions)
        schemas[kind] = {"$ref": f"#/$defs/{name}"}
    sources = {name: metadata.version(name) for name in _PACKAGES}
    found = {"sources": sources, "schemas": schemas, "$defs": definitions}
    path = Path(__file__).parents[1] / "tests" / "data" / "kubernetes.json"
    path.write_text(json.dumps(found, sort_keys=True, separators=(",", ":")) + "\n")


def _add(name: str, own: dict[str, Any], definitions: dict[str, Any]) -> None:
    """Adds a definition of Kubernetes', with all that it names."""
    if name in definitions:
        return
    text = json.dumps(strict(own[name]))
    definitions[name] = json.loads(
        text.replace("#/definitions/", "#/$defs/").replace("_definitions.json", "")
    )
    for other in re.findall(r'"#/\$defs/([^"]+)"', json.dumps(definitions[name])):
        _add(other, own, definitions)


if __name__ == "__main__":
    main()
