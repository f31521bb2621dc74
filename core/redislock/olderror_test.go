package redislock

import "testing"

func TestErrorsInScriptsOfOldServersBeginAsThoseOfNewOnes(t *testing.T) {
	t.Parallel()
	const old = "ERR Error running script (call to f_a77635c7ca1878d9844e4021effd98d566d6e01c): @user_script:83: @user_script: 83: "
	for text, want := range map[string]string{
		old + "Unknown Redis command called from Lua script: ":                                        "Unknown Redis command called from Lua script: script, on @user_script:83.",
		old + "-READONLY You can't write against a read only replica. ":                               "READONLY You can't write against a read only replica. script, on @user_script:83.",
		"@user_script: 25: -OOM command not allowed when used memory > 'maxmemory'.":                  "OOM command not allowed when used memory > 'maxmemory'. script, on @user_script:25.",
		"READONLY You can't write against a read only replica. script: a776, on @user_script:83.":     "READONLY You can't write against a read only replica. script: a776, on @user_script:83.",
		"ERR unknown command 'evalsha', with args beginning with: 'a776' '3' 'holdfast:@user_script'": "ERR unknown command 'evalsha', with args beginning with: 'a776' '3' 'holdfast:@user_script'",
	} {
		if got := modern(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
