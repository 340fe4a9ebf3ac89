package effects

import (
	"strings"

	"github.com/gormlock/gormlock/gormlockvet/internal/facts"
	"github.com/gormlock/gormlock/gormlockvet/internal/gormapi"
)

var effects = map[gormapi.Func]facts.EffectKind{
	{Pkg: "time", Name: "Sleep"}: facts.Sleep,

	{Pkg: "os/exec", Recv: "Cmd", Name: "Run"}:            facts.OtherProgram,
	{Pkg: "os/exec", Recv: "Cmd", Name: "Output"}:         facts.OtherProgram,
	{Pkg: "os/exec", Recv: "Cmd", Name: "CombinedOutput"}: facts.OtherProgram,
	{Pkg: "os/exec", Recv: "Cmd", Name: "Wait"}:           facts.OtherProgram,

	{Pkg: "net/smtp", Name: "SendMail"}:                        facts.Network,
	{Pkg: "net", Name: "Dial"}:                                 facts.Network,
	{Pkg: "net", Name: "DialTimeout"}:                          facts.Network,
	{Pkg: "net", Recv: "Dialer", Name: "DialContext"}:          facts.Network,
	{Pkg: "net/http", Recv: "RoundTripper", Name: "RoundTrip"}: facts.Network,
	{Pkg: "net/http", Recv: "Transport", Name: "RoundTrip"}:    facts.Network,

	{Pkg: "net/http", Recv: "ResponseWriter", Name: "Write"}:       facts.Answer,
	{Pkg: "net/http", Recv: "ResponseWriter", Name: "WriteHeader"}: facts.Answer,
	{Pkg: "net/http", Name: "Error"}:                               facts.Answer,
	{Pkg: "net/http", Name: "Redirect"}:                            facts.Answer,

	{Pkg: "os", Name: "WriteFile"}:  facts.File,
	{Pkg: "os", Name: "Create"}:     facts.File,
	{Pkg: "os", Name: "Remove"}:     facts.File,
	{Pkg: "os", Name: "RemoveAll"}:  facts.File,
	{Pkg: "os", Name: "Rename"}:     facts.File,
	{Pkg: "os", Name: "Truncate"}:   facts.File,
	{Pkg: "os", Name: "Mkdir"}:      facts.File,
	{Pkg: "os", Name: "Symlink"}:    facts.File,
	{Pkg: "os", Name: "CreateTemp"}: facts.File,

	{Pkg: "os", Recv: "File", Name: "Write"}:       facts.File,
	{Pkg: "os", Recv: "File", Name: "WriteString"}: facts.File,
	{Pkg: "os", Recv: "File", Name: "Truncate"}:    facts.File,
}

// webAnswers are the methods by which the context of a web framework answers.
var webAnswers = map[string]bool{
	"JSON": true, "String": true, "HTML": true, "XML": true, "Redirect": true, "AbortWithStatusJSON": true, "SendString": true,
	"SendStatus": true, "NoContent": true, "IndentedJSON": true, "Data": true, "Blob": true,
}

// of returns what a function of the standard library, or of a library that many use, does.
func of(f gormapi.Func) facts.EffectKind {
	if kind := effects[f]; kind != 0 {
		return kind
	}
	switch {
	case f.Pkg == "net/http" && (f.Recv == "" || f.Recv == "Client"):
		switch f.Name {
		case "Get", "Post", "PostForm", "Head", "Do":
			return facts.Network
		}
	case strings.HasPrefix(f.Pkg, "github.com/go-resty/resty") && f.Recv == "Request":
		switch f.Name {
		case "Get", "Post", "Put", "Patch", "Delete", "Head", "Execute", "Send":
			return facts.Network
		}
	case f.Pkg == "google.golang.org/grpc" && (f.Recv == "ClientConn" || f.Recv == "ClientConnInterface") &&
		(f.Name == "Invoke" || f.Name == "NewStream"):
		return facts.Network
	case (strings.HasPrefix(f.Pkg, "github.com/gin-gonic/gin") || strings.HasPrefix(f.Pkg, "github.com/labstack/echo") ||
		strings.HasPrefix(f.Pkg, "github.com/gofiber/fiber")) && (f.Recv == "Context" || f.Recv == "Ctx") && webAnswers[f.Name]:
		return facts.Answer
	}
	return 0
}
