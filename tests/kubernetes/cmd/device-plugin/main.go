// Command device-plugin offers devices that do not exist to a kubelet of the tests, as the plugins of vendors offer theirs.
//
//	device-plugin -dir FOLDER [-orders FILE] RESOURCE=COUNT...
//
// FOLDER is the kubelet's `device-plugins`. Each resource is a plugin of its own; its devices are RESOURCE's last word with a
// number, as gpu-3. FILE, if it is there, has one order a line, and is read again ten times a second:
//
//	unhealthy DEVICE    the device is broken
//	refuse RESOURCE     no container gets a device of it: the kubelet says UnexpectedAdmissionError
//	far RESOURCE        its devices are at a NUMA node that the machine lacks: where the kubelet aligns devices, it says
//	                    TopologyAffinityError
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const pause = 100 * time.Millisecond

var (
	dir    = flag.String("dir", "/var/lib/kubelet/device-plugins", "where the kubelet's socket is")
	orders = flag.String("orders", "", "file of orders")
)

// offer is one resource.
type offer struct {
	plugin.UnimplementedDevicePluginServer
	resource string
	count    int
}

func isOrdered(order, about string) bool {
	text, _ := os.ReadFile(*orders)
	for _, line := range strings.Split(string(text), "\n") {
		if line == order+" "+about {
			return true
		}
	}
	return false
}

func (o offer) devices() []*plugin.Device {
	var numa int64
	if isOrdered("far", o.resource) {
		numa = 7
	}
	all := make([]*plugin.Device, o.count)
	for i := range all {
		id := fmt.Sprintf("%s-%d", o.resource[strings.LastIndex(o.resource, "/")+1:], i)
		health := plugin.Healthy
		if isOrdered("unhealthy", id) {
			health = plugin.Unhealthy
		}
		all[i] = &plugin.Device{ID: id, Health: health, Topology: &plugin.TopologyInfo{Nodes: []*plugin.NUMANode{{ID: numa}}}}
	}
	return all
}

func (o offer) GetDevicePluginOptions(context.Context, *plugin.Empty) (*plugin.DevicePluginOptions, error) {
	return &plugin.DevicePluginOptions{}, nil
}

func (o offer) ListAndWatch(_ *plugin.Empty, stream grpc.ServerStreamingServer[plugin.ListAndWatchResponse]) error {
	var sent []*plugin.Device
	for {
		if now := o.devices(); !reflect.DeepEqual(now, sent) {
			if err := stream.Send(&plugin.ListAndWatchResponse{Devices: now}); err != nil {
				return err
			}
			sent = now
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-time.After(pause):
		}
	}
}

func (o offer) Allocate(_ context.Context, request *plugin.AllocateRequest) (*plugin.AllocateResponse, error) {
	if isOrdered("refuse", o.resource) {
		return nil, errors.New("the driver of " + o.resource + " does not answer")
	}
	response := &plugin.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		response.ContainerResponses = append(response.ContainerResponses, &plugin.ContainerAllocateResponse{
			Envs: map[string]string{"TEST_DEVICES": strings.Join(container.DevicesIds, ",")}})
	}
	return response, nil
}

// serve offers the resource until the kubelet has removed the socket, as one that starts anew does.
func (o offer) serve() error {
	file := strings.NewReplacer("/", "-", ".", "-").Replace(o.resource) + ".sock"
	socket := filepath.Join(*dir, file)
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	serving := grpc.NewServer()
	defer serving.Stop()
	plugin.RegisterDevicePluginServer(serving, o)
	go serving.Serve(listener)
	kubelet, err := grpc.NewClient("unix://"+filepath.Join(*dir, "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer kubelet.Close()
	_, err = plugin.NewRegistrationClient(kubelet).Register(context.Background(), &plugin.RegisterRequest{
		Version: plugin.Version, Endpoint: file, ResourceName: o.resource, Options: &plugin.DevicePluginOptions{}})
	if err != nil {
		return err
	}
	log.Printf("registered %d of %s", o.count, o.resource)
	for {
		time.Sleep(pause)
		if _, err := os.Stat(socket); err != nil {
			return errors.New("the socket is gone")
		}
	}
}

func main() {
	flag.Parse()
	for _, word := range flag.Args() {
		resource, number, _ := strings.Cut(word, "=")
		count, err := strconv.Atoi(number)
		if err != nil || resource == "" {
			log.Fatalf("%q is not RESOURCE=COUNT", word)
		}
		go func() {
			for {
				log.Printf("%s: %v", resource, offer{resource: resource, count: count}.serve())
				time.Sleep(pause)
			}
		}()
	}
	select {}
}
