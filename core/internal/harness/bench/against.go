package main

// beforeName is Holdfast at another commit: a program of this one's kind that was built there. See -against.
const beforeName = "Holdfast before"

// against has each scenario compare Holdfast with itself, by the gates of a change of the engine.
func against(all []scenario) []scenario {
	rate, fair := atLeast("rate", 1, beforeName), atLeast("jain", 0.99)
	gates := map[string][]goal{
		"pair":          {rate},
		"pairs-64":      {rate},
		"one-name":      {rate, fair},
		"one-name-wide": {rate, fair},
		"handover":      {atMost("p50", 1.05, beforeName), atMost("p99", 1.05, beforeName)},
		"waiting":       {atMost("commands", 3)},
		"held-10000":    {atMost("bytes", 600)},
	}
	for i, s := range all {
		all[i].contestants, all[i].goals = []string{holdfastName, beforeName}, gates[s.name]
	}
	return all
}
