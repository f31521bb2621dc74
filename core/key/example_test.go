package key_test

import (
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/key"
)

func ExampleParse() {
	order, err := key.Parse("tenant:{header:X-Tenant|text}:order:{order.id}")
	if err != nil {
		panic(err)
	}
	fmt.Println(order)
	fmt.Println(order.Sources())

	_, err = key.Parse("{tenant}{id}")
	fmt.Println(errors.Is(err, core.ErrInvalid))
	// Output:
	// tenant:{header:X-Tenant|text}:order:{order.id}
	// [header:X-Tenant|text order.id]
	// true
}

func ExampleKey_Name() {
	order := key.MustParse("{tenant}:{id}")
	for _, values := range [][]string{{"acme", "42"}, {"1:2", "3"}, {"1", "2:3"}} {
		name, err := order.Name(values...)
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

func ExampleForm() {
	order := key.MustParse("order:{id|int}")
	for _, value := range []string{"42", "042", "+42", "4e1"} {
		fmt.Println(order.Name(value))
	}
	// Output:
	// order:42 <nil>
	// order:42 <nil>
	// order:42 <nil>
	//  holdfast: key "order:{id|int}": {id}: holdfast: invalid value: not an integer
}

func ExampleKey_Expand() {
	request := map[string]string{"id": "42", "query:part": "a b"}
	order := key.MustParse("order:{id}:{query:part}")
	name, err := order.Expand(func(source string) (string, error) {
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
		value, err := key.JSONValue([]byte(doc), "order.id")
		if err != nil {
			panic(err)
		}
		fmt.Println(value)
	}
	_, err := key.JSONValue([]byte(`{"order":{"id":42,"ID":43}}`), "order.id")
	fmt.Println(errors.Is(err, core.ErrInvalid))
	// Output:
	// 42
	// 42
	// true
}
