// Package harness is a module for what is tested across modules, with libraries that no user should inherit: chaos (faults,
// and checkers of what came of them), bench (cost beside other libraries), backends (the backends beside each other), and
// fence, sqlstore, telemetry, the inspector's page and rivermw with real databases, OpenTelemetry's SDK, a browser and River.
package harness
