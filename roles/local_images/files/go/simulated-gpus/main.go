// Copyright: (c) 2026, Muster contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later

// The device plugin with which Kubernetes tests its kubelet, for a resource and a number of devices that one can choose. No device is
// there: a container that gets some is told their names, in the variable in which NVIDIA's plugin names GPUs, and nothing else.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"k8s.io/klog/v2"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	plugin "k8s.io/kubernetes/pkg/kubelet/cm/devicemanager/plugin/v1beta1"
)

func allocate(request *pluginapi.AllocateRequest, _ map[string]*pluginapi.Device) (*pluginapi.AllocateResponse, error) {
	answer := &pluginapi.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		answer.ContainerResponses = append(answer.ContainerResponses, &pluginapi.ContainerAllocateResponse{
			Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(container.DevicesIds, ",")},
		})
	}
	return answer, nil
}

func run(ctx context.Context, resource string, count int) error {
	logger := klog.FromContext(ctx)
	devices := make([]*pluginapi.Device, count)
	for i := range devices {
		devices[i] = &pluginapi.Device{ID: fmt.Sprintf("simulated-gpu-%d", i), Health: pluginapi.Healthy}
	}
	served := plugin.NewDevicePluginStub(logger, devices, pluginapi.DevicePluginPath+"muster-simulated.sock", resource, false, false)
	served.SetAllocFunc(allocate)
	if err := served.Start(ctx); err != nil {
		return err
	}
	if err := served.Register(ctx, pluginapi.KubeletSocket, resource, pluginapi.DevicePluginPath); err != nil {
		return err
	}
	// Registers again where the kubelet was restarted.
	go served.Watch(ctx, pluginapi.KubeletSocket, resource, pluginapi.DevicePluginPath)
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGINT, syscall.SIGTERM)
	<-ended
	return served.Stop(logger)
}

func main() {
	resource := flag.String("resource", "nvidia.com/gpu", "extended resource to offer")
	count := flag.Int("count", 1, "number of devices")
	flag.Parse()
	if err := run(context.Background(), *resource, *count); err != nil {
		klog.ErrorS(err, "The devices cannot be offered")
		os.Exit(1)
	}
}
