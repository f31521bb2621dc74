// Package natsserver pins the nats-server that tests run; see servers.NATS. It is a module of its own, so that nobody
// who imports core/natslock gets the requirements of a server.
//
//	cd tools/natsserver && GOWORK=off go tool nats-server --jetstream
package natsserver
