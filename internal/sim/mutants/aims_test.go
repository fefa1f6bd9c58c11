package mutants

// aims says of a mutant which family of faults plays what its rule is for: its
// seeds draw from that one alone. The others' seeds draw as all do.
var aims = map[string]string{
	"R4.11 the follower does not look into its own epochs":                      "duel",
	"R3.3 a newer leader epoch is served":                                       "deaf",
	"R3.3 an older leader epoch is not fenced":                                  "tail",
	"R4.11 the HW of a diverging answer counts":                                 "tail",
	"R4.13 a leader that is ahead is not followed anew":                         "trim",
	"R4.10 a log that starts inside a batch cannot begin":                       "trim",
	"R5.10 a refusal for an old version proves that nothing changed":            "rejoin",
	"R5.10 a lost proposal is not sent again":                                   "rejoin",
	"R5.10 an answer to an earlier proposal counts":                             "rejoin",
	"R8.17 retention goes past the HW":                                          "trim",
	"R4.12 the producers are not rebuilt after a cut":                           "tail",
	"R2.7 a refused append changes what is known of the producer":               "tail",
	"R2.11 a retry is appended again":                                           "tail",
	"R4.3 followers are remembered across a missed epoch":                       "deaf",
	"R2.21 a coordinator takes what is appended for committed":                  "tail",
	"R3.9 RemoteLEO takes the greater offset":                                   "relapse",
	"R6.15 a broker asks to serve before it has read its registration, and may": "kill,late,loss",
	"R6.16 a reassignment waits for the added replicas alone":                   "bounce,kill",
	"R6.7 an unclean election keeps the ISR":                                    "lone",
	"R6.9 without ELR the ISR may become empty":                                 "lone",
	"R8.19 the sign of a clean stop stays":                                      "relapse",
	"R8.21 recovery trusts every segment":                                       "relapse",
	"R5.5 a stopping broker may join":                                           "stop",
	"R5.5 nobody minds that who joins is stopping":                              "stop",
	"R3.8 former lives count everywhere":                                        "haunt",
	"R3.8 a fetch of an earlier life counts":                                    "haunt",
	"R5.8 broker epoch of an ISR member not compared":                           "haunt",
}
