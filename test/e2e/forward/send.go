// send HOST PORT COUNT TAG [tls]: events through fluent-logger-golang, Message mode, each acknowledged; over TLS to a server that SSL_CERT_FILE vouches for.
package main

import (
	"fmt"
	"log"
	"os"
	"strconv"

	"github.com/fluent/fluent-logger-golang/fluent"
)

func main() {
	port, _ := strconv.Atoi(os.Args[2])
	count, _ := strconv.Atoi(os.Args[3])
	network := "tcp"
	if len(os.Args) > 5 {
		network = os.Args[5]
	}
	f, err := fluent.New(fluent.Config{FluentNetwork: network, FluentHost: os.Args[1], FluentPort: port, SubSecondPrecision: true, RequestAck: true})
	if err != nil {
		log.Fatal(err)
	}
	for i := 0; i < count; i++ {
		if err := f.Post(os.Args[4], map[string]any{"message": fmt.Sprintf("m %d é", i), "n": i}); err != nil {
			log.Fatal(err)
		}
	}
	f.Close()
}
