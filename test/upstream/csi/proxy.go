// Command proxy connects each connection of a Unix socket to a TCP port. The driver runs in upstream's e2e.test, which
// connects to the port. It replaces hostpathplugin's -proxy-endpoint and has its flags.
package main

import (
	"flag"
	"io"
	"log"
	"net"
	"os"
	"strings"
)

func listen(endpoint string) net.Listener {
	network, address := "unix", endpoint
	if before, after, found := strings.Cut(endpoint, "://"); found {
		network, address = before, after
	}
	if network == "unix" {
		_ = os.Remove(address)
	}
	listener, err := net.Listen(network, address)
	if err != nil {
		log.Fatal(err)
	}
	return listener
}

func join(a, b net.Conn) {
	ended := make(chan struct{}, 2)
	forward := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		ended <- struct{}{}
	}
	go forward(a, b)
	go forward(b, a)
	<-ended
	_ = a.Close()
	_ = b.Close()
}

func main() {
	endpoint := flag.String("endpoint", "/csi/csi.sock", "socket of the sidecars")
	proxied := flag.String("proxy-endpoint", "tcp://:9000", "where the driver connects")
	flag.String("nodeid", "", "has no effect")
	flag.String("drivername", "", "has no effect")
	flag.String("statedir", "", "has no effect")
	flag.Int("v", 0, "has no effect")
	flag.Parse()
	driver, clients := listen(*proxied), listen(*endpoint)
	for {
		client, err := clients.Accept()
		if err != nil {
			log.Fatal(err)
		}
		behind, err := driver.Accept()
		if err != nil {
			log.Fatal(err)
		}
		go join(client, behind)
	}
}
