# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of all trainings; the same as a part of OPTIONS in module_utils/_edge/trainings.py."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  files:
    description:
      - Files for all pods, by name or by path below O(files_path), such as C(data/train.csv).
      - They are stored in a ConfigMap of at most 1 MiB. Put larger files on the shared storage.
      - A value is the text, or a mapping with V(base64) where it is no text. Lookup P(muster.ml.files#lookup) reads files and folders.
    type: dict
    default: {}
  files_path:
    description: Mount path of O(files), which are read-only.
    type: str
    default: /workspace/scripts
  restart:
    description: Train again, whatever the state of the training. The storage stays, so its program can resume from its checkpoint.
    type: bool
    default: false
  wait:
    description: Wait for the state O(wait_for), and with O(state=absent) for the deletion.
    type: bool
    default: true
  wait_for:
    description: State to wait for. V(completed) is the successful end, V(running) means that all pods run.
    type: str
    choices: [completed, running]
    default: running
  wait_timeout:
    description:
      - Seconds after which waiting fails. The error names the pods that are not in the desired state, with the reason.
      - Waiting ends earlier if a pod has failed four times in a row with the same exit status, each time within 60 seconds of its start and
        the last time during this wait. The error has the last lines of its log. Killed and evicted pods are not counted.
    type: int
    default: 600
  image_timeout:
    description:
      - Seconds for which an image is waited for whose registry does not answer, or whose host name does not resolve. Then waiting fails.
      - An image that the registry refuses, because it does not exist or not for these credentials, is waited for one minute.
    type: int
    default: 300
  preflight:
    description:
      - Fail before anything is created if not all pods fit on the cluster at once, with the numbers and the nearest size that fits, as
        M(muster.ml.gang_preflight) judges it.
      - What may not be read or is not judged is no error, nor is what an autoscaler, the removal of pods or preemption could make fit.
      - A training that is there is judged only if it is started again, without its own pods, or if it gets more pods, for those.
        Without any of that nothing is asked.
      - In check mode and with O(wait=false) it is a warning. V(false) lets pods wait for room.
    type: bool
    default: true
  delete_data:
    description: Delete the claim of O(storage), too, with O(state=absent), if this module created it.
    type: bool
    default: false
  planned:
    description:
      - Result of the same task in check mode, such as in a preflight of the same run of C(ansible-playbook).
      - If it has RV(plan), the options are the same, and no workload was deleted since then, it is returned again, without looking at the
        training once more. Otherwise it is ignored.
    type: dict
seealso:
  - module: muster.ml.job_info
  - module: muster.ml.job_logs
  - module: muster.ml.job_stacks
"""
