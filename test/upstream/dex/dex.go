// Command dex runs dex with one client and one user. Its only argument is a JSON object with its settings.
package main

import (
	"context"
	"encoding/json"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/dexidp/dex/server"
	"github.com/dexidp/dex/storage"
	"github.com/dexidp/dex/storage/memory"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/sirupsen/logrus"
)

type settings struct {
	Listen, Issuer, Certificate, Key, Web, Secret string
	Redirects                                     []string
	RotateSeconds, SkewSeconds                    int
}

func main() {
	var given settings
	if err := json.Unmarshal([]byte(os.Args[1]), &given); err != nil {
		log.Fatal(err)
	}
	logger := &logrus.Logger{Out: os.Stderr, Formatter: &logrus.TextFormatter{}, Level: logrus.InfoLevel}
	store := storage.WithStaticClients(memory.New(logger), []storage.Client{
		{ID: "hyperedge", Secret: given.Secret, Name: "hyperedge", RedirectURIs: given.Redirects},
	})
	store = storage.WithStaticConnectors(store, []storage.Connector{{ID: "mock", Type: "mockCallback", Name: "mock"}})
	skew := time.Duration(given.SkewSeconds) * time.Second
	handler, err := server.NewServer(context.Background(), server.Config{
		Issuer:             given.Issuer,
		Storage:            store,
		SkipApprovalScreen: true,
		RotateKeysAfter:    time.Duration(given.RotateSeconds) * time.Second,
		Now:                func() time.Time { return time.Now().Add(skew) },
		Web:                server.WebConfig{Dir: given.Web},
		Logger:             logger,
		PrometheusRegistry: prometheus.NewRegistry(),
	})
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServeTLS(given.Listen, given.Certificate, given.Key, handler))
}
