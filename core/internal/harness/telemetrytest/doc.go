// Package telemetrytest tests package telemetry with OpenTelemetry's SDK.
package telemetrytest
