// Package etcdlock is the backend on etcd.
package etcdlock
