// Package telemetrytest tests package telemetry with OpenTelemetry's SDK, which stays out of
// the module that users of the library have.
package telemetrytest
