# SPDX-License-Identifier: GPL-3.0-or-later
"""The files that make a set of namespaces into a Kubernetes node, as text. No I/O."""

from __future__ import annotations

import dataclasses
import json
import shlex
import typing as t

from .spec import ClusterSpec, NodeSpec

# kubeadm, the kubelet and containerd expect these folders at fixed places; inside the node each is the node's own.
OWN_FOLDERS = (
    "/etc/kubernetes",
    "/etc/cni/net.d",
    "/var/lib/kubelet",
    "/var/lib/etcd",
    "/var/lib/containerd",
    "/var/lib/cni",
    "/var/log/pods",
    "/var/log/containers",
)
RESOLVER = "own/etc/kubernetes/resolv.conf"
# On a host with systemd-resolved /etc/resolv.conf is a link into /run, of which a node has one of its own; the addresses of others are
# often those of the host alone (127.0.0.53), or not reached. A file of the host is never made.
RESOLVER_SCRIPT = """\
#!/bin/sh
# Gives programs of the node name servers that it reaches; made by Muster.
set -eu
target=$(readlink -m /etc/resolv.conf)
case $target in /run/*) mkdir -p "${target%/*}"; [ -e "$target" ] || : > "$target";; esac
[ -e "$target" ] || exit 0
umount -n "$target" 2> /dev/null || true  # of an earlier run
mount -n --bind /etc/kubernetes/resolv.conf "$target"
"""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclasses.dataclass(frozen=True, kw_only=True)
class HostTraits:
    """Properties of the host that decide how a node is set up."""

    python: str
    cgroup_version: int
    # The mount points of the cgroup hierarchies: one for version 2, one per controller for version 1.
    cgroup_mounts: tuple[str, ...]
    # Without CAP_SYS_RESOURCE a process may not lower an OOM score or raise a limit.
    may_raise_limits: bool
    cni_bin_dirs: tuple[str, ...]
    name_servers: tuple[str, ...] = ()


Snapshotter = t.Literal["overlayfs", "native"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class NodeSettings:
    """Choices that are the same for all nodes of a cluster."""

    pause_image: str
    snapshotter: Snapshotter = "overlayfs"
    egress: bool = False
    dns_upstream: tuple[str, ...] = ()
    extra_programs: tuple[tuple[str, str], ...] = ()


def node_files(spec: ClusterSpec, node: NodeSpec, host: HostTraits, settings: NodeSettings) -> dict[str, tuple[int, str]]:
    """Path below the node's state folder -> (mode, text)."""
    return {
        "start.sh": (0o755, start_script(node, host)),
        "init.sh": (0o755, init_script(spec, node, host)),
        "resolver.sh": (0o755, RESOLVER_SCRIPT),
        "kubelet.sh": (0o755, kubelet_script(spec)),
        "supervisord.conf": (0o644, supervisor_config(spec, node, settings)),
        "containerd.toml": (0o644, containerd_config(spec, node, host, settings)),
        RESOLVER: (0o644, resolver_config(spec, host, settings)),
        "own/etc/cni/net.d/10-muster.conflist": (0o644, cni_config(node)),
    }


def start_script(node: NodeSpec, host: HostTraits) -> str:
    """Run on the host: enter the node's cgroups and namespaces, then become the node's pid 1."""
    lines = ["#!/bin/sh", "# Starts the node; made by Muster.", "set -eu"]
    for mount in host.cgroup_mounts:
        lines.append(f"echo $$ > {mount}/{node.cgroup}/init/cgroup.procs")
    lines += [
        # --kill-child: to kill the outer process also ends the node.
        f"exec nsenter --net=/run/netns/{node.netns} "
        f"unshare --mount --uts --ipc --pid --fork --kill-child --mount-proc {node.state_dir}/init.sh",
        "",
    ]
    return "\n".join(lines)


def init_script(spec: ClusterSpec, node: NodeSpec, host: HostTraits) -> str:
    """Run as pid 1 inside the node's namespaces: mount the node's folders over the host's, then become supervisord."""
    state, run = node.state_dir, node.run_dir
    lines = [
        "#!/bin/sh",
        "# pid 1 of the node; made by Muster.",
        "set -eu",
        f"export PATH={spec.state_dir}/bin:{PATH}",
        f"echo {node.name} > /proc/sys/kernel/hostname",
        "mount --make-rprivate /",
        "# -n: no note of these mounts in /run, which is the host's until the last one.",
        "# A /run of the node's own: no socket, lock or network namespace of the host or of another node is seen in it.",
        f"mount -n -t tmpfs -o mode=0755 tmpfs {state}/run",
        f"mkdir -p {state}/run{run[len('/run') :]} {state}/run/lock",
        f"mount -n --bind {run} {state}/run{run[len('/run') :]}",
        f"mount -n --move {state}/run /run",
    ]
    lines += [f"mount -n --bind {state}/own{folder} {folder}" for folder in OWN_FOLDERS]
    lines += [
        f"{state}/resolver.sh",
        "# Mounts of pods must be seen by the kubelet and the other way round (never by the host: this is its own tree).",
        "mount --make-rshared /",
        "echo 1 > /proc/sys/net/ipv4/ip_forward",
        "ip link set lo up",
        f"export PYTHONPATH={spec.state_dir}/supervisor",
        f"exec {shlex.quote(host.python)} -m supervisor.supervisord --nodaemon --configuration {state}/supervisord.conf",
        "",
    ]
    return "\n".join(lines)


def kubelet_script(spec: ClusterSpec) -> str:
    """Start the kubelet once kubeadm has written its configuration."""
    return "\n".join(
        [
            "#!/bin/sh",
            "# Starts the kubelet as soon as kubeadm has written its configuration; made by Muster.",
            "set -eu",
            "until [ -s /var/lib/kubelet/config.yaml ] && [ -s /var/lib/kubelet/kubeadm-flags.env ]; do sleep 0.2; done",
            ". /var/lib/kubelet/kubeadm-flags.env",
            "# shellcheck disable=SC2086  # flags, separated by blanks",
            f"exec {spec.state_dir}/bin/kubelet --config=/var/lib/kubelet/config.yaml "
            "--kubeconfig=/etc/kubernetes/kubelet.conf --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf "
            "${KUBELET_KUBEADM_ARGS}",
            "",
        ]
    )


def supervisor_config(spec: ClusterSpec, node: NodeSpec, settings: NodeSettings) -> str:
    state = node.state_dir
    programs = {
        "containerd": f"{spec.state_dir}/bin/containerd --config {state}/containerd.toml",
        "kubelet": f"{state}/kubelet.sh",
        **(dict(settings.extra_programs) if node.index == 1 else {}),
    }
    rpc = {"supervisor.rpcinterface_factory": "supervisor.rpcinterface:make_main_rpcinterface"}
    sections = [
        _section(
            "supervisord",
            nodaemon="true",
            user="root",
            directory="/",
            silent="true",
            logfile=f"{state}/log/supervisord.log",
            logfile_maxbytes="5MB",
            logfile_backups="1",
            pidfile="/run/supervisord.pid",
            childlogdir=f"{state}/log",
        ),
        _section("unix_http_server", file=f"{node.run_dir}/supervisor.sock", chmod="0700"),
        _section("supervisorctl", serverurl=f"unix://{node.run_dir}/supervisor.sock"),
        _section("rpcinterface:supervisor", **rpc),
        *(_program(state, one, command, number) for number, (one, command) in enumerate(programs.items(), start=1)),
    ]
    return "# Made by Muster.\n" + "\n".join(sections)


def _program(state: str, name: str, command: str, priority: int) -> str:
    """A service of the node, which supervisord restarts without limit."""
    return _section(
        f"program:{name}",
        command=command,
        priority=str(priority),
        autorestart="true",
        startretries="1000000",
        startsecs="0",
        stopwaitsecs="10",
        redirect_stderr="true",
        stdout_logfile=f"{state}/log/{name}.log",
        stdout_logfile_maxbytes="20MB",
        stdout_logfile_backups="2",
    )


def _section(title: str, **values: str) -> str:
    return f"[{title}]\n" + "".join(f"{key} = {value}\n" for key, value in values.items())


def containerd_config(spec: ClusterSpec, node: NodeSpec, host: HostTraits, settings: NodeSettings) -> str:
    """containerd 2 (configuration version 3). JSON strings and lists are TOML too."""
    runtime = 'plugins."io.containerd.cri.v1.runtime"'
    images = 'plugins."io.containerd.cri.v1.images"'
    lines = [
        "# Made by Muster.",
        "version = 3",
        'root = "/var/lib/containerd"',
        'state = "/run/containerd"',
        "[grpc]",
        f"  address = {json.dumps(node.containerd_socket)}",
        f"[{images}]",
        f"  snapshotter = {json.dumps(settings.snapshotter)}",
        # One folder: containerd's own default is a list of two, which its transfer service takes for one name (seen with 2.3.7).
        f"[{images}.registry]",
        '  config_path = "/etc/containerd/certs.d"',
        f"[{images}.pinned_images]",
        f"  sandbox = {json.dumps(settings.pause_image)}",
        f"[{runtime}]",
        f"  restrict_oom_score_adj = {json.dumps(not host.may_raise_limits)}",
        f"[{runtime}.cni]",
        # Released plugins lie beside the cluster's other programs; runc is found there, too, because that folder is the first of PATH.
        f"  bin_dirs = {json.dumps([f'{spec.state_dir}/bin', *host.cni_bin_dirs])}",
        '  conf_dir = "/etc/cni/net.d"',
        f"[{runtime}.containerd]",
        '  default_runtime_name = "runc"',
        f"[{runtime}.containerd.runtimes.runc]",
        '  runtime_type = "io.containerd.runc.v2"',
        f"[{runtime}.containerd.runtimes.runc.options]",
        "  SystemdCgroup = false",
        "",
    ]
    return "\n".join(lines)


def cni_config(node: NodeSpec) -> str:
    """A route for each pod; other nodes are reached by routes, the outside through the host (if egress is on).

    On a bridge each pod would be a neighbour of all others. The kernel has room for 1,024 on the whole machine: 30 pods that all talk to
    each other filled it, and the host lost its name service.
    """
    point_to_point = {
        "type": "ptp",
        "ipMasq": False,
        "ipam": {"type": "host-local", "ranges": [[{"subnet": node.pod_cidr}]], "routes": [{"dst": "0.0.0.0/0"}]},
    }
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}, "snat": True}
    return json.dumps({"cniVersion": "1.0.0", "name": "muster", "plugins": [point_to_point, portmap]}, indent=2) + "\n"


def resolver_config(spec: ClusterSpec, host: HostTraits, settings: NodeSettings) -> str:
    """The name servers of the node's programs, and of CoreDNS. Where there are none, it is the gateway, where none listens, so that outside
    names fail at once."""
    servers = settings.dns_upstream or (host.name_servers if settings.egress else ()) or (spec.gateway,)
    return "".join(f"nameserver {server}\n" for server in servers)


def kubeadm_documents(documents: t.Iterable[dict[str, t.Any]]) -> str:
    """The documents for kubeadm as JSON, which is also YAML."""
    return "\n---\n".join(json.dumps(document, indent=2, sort_keys=True) for document in documents) + "\n"
