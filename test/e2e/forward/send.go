// send HOST PORT COUNT TAG: events through fluent-logger-golang, Message mode, each acknowledged.
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
	f, err := fluent.New(fluent.Config{FluentHost: os.Args[1], FluentPort: port, SubSecondPrecision: true, RequestAck: true})
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
