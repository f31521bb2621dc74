package core_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-go/holdfast/core"
)

func ExampleParseKey() {
	key, err := core.ParseKey("tenant:{header:X-Tenant}:order:{order.id}")
	if err != nil {
		panic(err)
	}
	fmt.Println(key)
	fmt.Println(strings.Join(key.Sources(), ", "))

	_, err = core.ParseKey("{tenant}{id}")
	fmt.Println(errors.Is(err, core.ErrInvalid))
	// Output:
	// tenant:{header:X-Tenant}:order:{order.id}
	// header:X-Tenant, order.id
	// true
}

func ExampleKey_Name() {
	key := core.MustParseKey("{tenant}:{id}")
	for _, values := range [][]string{{"acme", "42"}, {"1:2", "3"}, {"1", "2:3"}} {
		name, err := key.Name(values...)
		if err != nil {
			panic(err)
		}
		fmt.Println(name)
	}
	// Output:
	// acme:42
	// 1%3A2:3
	// 1:2%3A3
}

func ExampleKey_Expand() {
	request := map[string]string{"id": "42", "query:part": "a b"}
	key := core.MustParseKey("order:{id}:{query:part}")
	name, err := key.Expand(func(source string) (string, error) {
		value, ok := request[source]
		if !ok {
			return "", errors.New("not in the request")
		}
		return value, nil
	})
	fmt.Println(name, err)
	// Output:
	// order:42:a%20b <nil>
}

func ExampleJSONValue() {
	for _, doc := range []string{`{"order":{"id":42}}`, `{"order":{"id":"42"}}`} {
		value, err := core.JSONValue([]byte(doc), "order.id")
		if err != nil {
			panic(err)
		}
		fmt.Println(value)
	}
	_, err := core.JSONValue([]byte(`{"order":{"id":42,"ID":43}}`), "order.id")
	fmt.Println(errors.Is(err, core.ErrInvalid))
	// Output:
	// 42
	// 42
	// true
}
