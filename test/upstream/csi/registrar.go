// Command registrar registers a CSI driver with the kubelet. It replaces the sidecar csi-node-driver-registrar, whose
// module some proxies lack, and has its flags. Source: k8s.io/kubelet/pkg/apis/pluginregistration/v1.
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

type server struct {
	registration.UnimplementedRegistrationServer
	info *registration.PluginInfo
}

func (s *server) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return s.info, nil
}

// If the kubelet rejects the driver, the container exits and is restarted.
func (s *server) NotifyRegistrationStatus(_ context.Context, status *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	log.Printf("registration: registered=%v error=%q", status.PluginRegistered, status.Error)
	if !status.PluginRegistered {
		os.Exit(1)
	}
	return &registration.RegistrationStatusResponse{}, nil
}

func driverName(socket string, limit time.Duration) (string, error) {
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return "", err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	info, err := csi.NewIdentityClient(connection).GetPluginInfo(ctx, &csi.GetPluginInfoRequest{}, grpc.WaitForReady(true))
	return info.GetName(), err
}

func main() {
	socket := flag.String("csi-address", "/run/csi/socket", "socket of the driver")
	endpoint := flag.String("kubelet-registration-path", "", "the same socket, as the kubelet sees it")
	directory := flag.String("plugin-registration-path", "/registration", "where the kubelet looks for sockets")
	limit := flag.Duration("timeout", time.Second, "of a call to the driver")
	flag.Int("v", 0, "has no effect")
	flag.Parse()
	var name string
	for {
		var err error
		if name, err = driverName(*socket, *limit); err == nil {
			break
		}
		log.Printf("driver does not answer: %v", err)
		time.Sleep(time.Second)
	}
	path := filepath.Join(*directory, name+"-reg.sock")
	_ = os.Remove(path)
	listener, err := net.Listen("unix", path)
	if err != nil {
		log.Fatal(err)
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		<-ended
		_ = os.Remove(path)
		os.Exit(0)
	}()
	served := grpc.NewServer()
	info := &registration.PluginInfo{Type: registration.CSIPlugin, Name: name, Endpoint: *endpoint, SupportedVersions: []string{"1.0.0"}}
	registration.RegisterRegistrationServer(served, &server{info: info})
	log.Printf("driver %s registers at %s", name, path)
	log.Fatal(served.Serve(listener))
}
