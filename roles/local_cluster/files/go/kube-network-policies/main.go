// Copyright: (c) 2026, Muster contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// Enforces the NetworkPolicies of a cluster at the pods of one node, in whose network namespace it runs.
//
// The kernel queues the first packet of each connection that the node forwards, and the policy engine of kube-network-policies decides on
// it. What a node and its own pods send each other without being forwarded is never queued, so the kubelet's probes always pass.
//
// The project's own programs need kernel features that not every kernel has (missing in Firecracker's guest kernel 6.18): the module
// nft_queue, and conntrack attributes in verdicts (NETFILTER_NETLINK_GLUE_CT). This one queues with the target NFQUEUE of x_tables.
package main

import (
	"context"
	"errors"
	"flag"
	"net/http"
	"net/netip"
	"os/signal"
	"syscall"
	"time"

	nfqueue "github.com/florianl/go-nfqueue/v2"
	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/xt"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	"sigs.k8s.io/kube-network-policies/pkg/api"
	"sigs.k8s.io/kube-network-policies/pkg/network"
	"sigs.k8s.io/kube-network-policies/pkg/networkpolicy"
	"sigs.k8s.io/kube-network-policies/pkg/podinfo"
)

const (
	queue = 100
	// headerBytes of a packet are copied to this program; policies look no further than its ports.
	headerBytes = 128
	queueLength = 8192
)

var (
	node   = flag.String("node", "", "name of the node")
	pods   = flag.String("pods", "", "range of the addresses of the cluster's pods")
	health = flag.String("health", "127.0.0.1:9879", "address that answers 200 while policies are enforced")
	table  = &nftables.Table{Name: "kube-network-policies", Family: nftables.TableFamilyIPv4}
)

func main() {
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		klog.Fatal(err)
	}
}

// run enforces policies until ctx ends, and then takes its rules away: without a program at the queue they drop every new connection.
// A program that is killed leaves them, so connections wait until the kubelet has started it again.
func run(ctx context.Context) error {
	judge, err := newJudge(ctx)
	if err != nil {
		return err
	}
	if err := judge.listen(ctx); err != nil {
		return err
	}
	if err := writeRules(); err != nil {
		return err
	}
	klog.Info("policies are enforced")
	failed := make(chan error, 1)
	go func() { failed <- answerProbes() }()
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	return errors.Join(err, removeRules())
}

// judge decides on packets by the policies, namespaces and pods of the cluster.
type judge struct {
	engine *networkpolicy.PolicyEngine
	known  *podinfo.InformerProvider
	pods   netip.Prefix
}

// newJudge returns once it has read all policies, namespaces and pods; it is told of their changes until ctx ends.
func newJudge(ctx context.Context) (*judge, error) {
	addresses, err := netip.ParsePrefix(*pods)
	if err != nil {
		return nil, err
	}
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	podInformer, namespaces, policies := factory.Core().V1().Pods(), factory.Core().V1().Namespaces(), factory.Networking().V1().NetworkPolicies()
	byAddress, err := podinfo.NewInformerResolver(podInformer.Informer())
	if err != nil {
		return nil, err
	}
	known := podinfo.NewInformerProvider(podInformer, namespaces, nil, []podinfo.IPResolver{byAddress})
	standard := networkpolicy.NewStandardNetworkPolicy(*node, namespaces, podInformer, policies)
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return nil, errors.New("not read from the API server: " + kind.String())
		}
	}
	return &judge{networkpolicy.NewPolicyEngine(known, []api.PolicyEvaluator{standard}), known, addresses}, nil
}

// listen decides on the packets of the queue, until ctx ends.
func (j *judge) listen(ctx context.Context) error {
	opened, err := nfqueue.Open(&nfqueue.Config{
		NfQueue:      queue,
		Flags:        nfqueue.NfQaCfgFlagGSO,
		MaxPacketLen: headerBytes,
		MaxQueueLen:  queueLength,
		Copymode:     nfqueue.NfQnlCopyPacket,
		WriteTimeout: 100 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	decide := func(queued nfqueue.Attribute) int {
		if err := opened.SetVerdict(*queued.PacketID, j.verdict(ctx, *queued.Payload)); err != nil {
			klog.ErrorS(err, "setting a verdict")
		}
		return 0
	}
	return opened.RegisterWithErrorFunc(ctx, decide, func(err error) int {
		if ctx.Err() == nil {
			klog.ErrorS(err, "reading the queue")
		}
		return 0
	})
}

// verdict drops what the engine denies, what it cannot read, and what goes to a pod whose address the API server does not tell yet: nothing
// says which policies the pod has. A client sends its first packet again after a second.
func (j *judge) verdict(ctx context.Context, payload []byte) int {
	packet, err := network.ParsePacket(payload)
	if err != nil {
		klog.ErrorS(err, "reading a packet")
		return nfqueue.NfDrop
	}
	destination, _ := netip.AddrFromSlice(packet.DstIP.To4())
	if _, known := j.known.GetPodInfoByIP(packet.DstIP.String()); !known && j.pods.Contains(destination) {
		return nfqueue.NfDrop
	}
	allowed, err := j.engine.EvaluatePacket(ctx, &packet)
	if err != nil {
		klog.ErrorS(err, "judging a packet")
	}
	if !allowed {
		klog.InfoS("denied", "packet", packet.String())
		return nfqueue.NfDrop
	}
	return nfqueue.NfAccept
}

// writeRules replaces the table: packets of known connections pass, all others that the node forwards are queued.
func writeRules() error {
	connection, err := nftables.New()
	if err != nil {
		return err
	}
	// Deleting a table that is not there is an error, so it is made first; the kernel takes all of it at once.
	connection.AddTable(table)
	connection.DelTable(table)
	connection.AddTable(table)
	forward := connection.AddChain(&nftables.Chain{
		Name: "forward", Table: table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter,
	})
	known := binaryutil.NativeEndian.PutUint32(expr.CtStateBitESTABLISHED | expr.CtStateBitRELATED)
	connection.AddRule(&nftables.Rule{Table: table, Chain: forward, Exprs: []expr.Any{
		&expr.Ct{Register: 1, Key: expr.CtKeySTATE},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: known, Xor: make([]byte, 4)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: make([]byte, 4)},
		&expr.Verdict{Kind: expr.VerdictAccept},
	}})
	connection.AddRule(&nftables.Rule{Table: table, Chain: forward, Exprs: []expr.Any{toQueue()}})
	return connection.Flush()
}

// toQueue is the target NFQUEUE of x_tables, revision 3: queuenum, queues_total and flags of struct xt_NFQ_info_v3, padded to 8 bytes.
func toQueue() *expr.Target {
	var info xt.Unknown
	for _, field := range []uint16{queue, 1, 0, 0} {
		info = append(info, binaryutil.NativeEndian.PutUint16(field)...)
	}
	return &expr.Target{Name: "NFQUEUE", Rev: 3, Info: &info}
}

func removeRules() error {
	connection, err := nftables.New()
	if err != nil {
		return err
	}
	connection.DelTable(table)
	return connection.Flush()
}

// answerProbes serves the probe of the kubelet.
func answerProbes() error {
	return http.ListenAndServe(*health, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
}
