#!/bin/sh
# One question by curl, answered by alice: python train.py --env "command:sh examples/agents/with_curl.sh"
# The problem is JSON already; standard output is the answer that is graded.
question=$(printf '%s' "$COTERIE_QUESTION" | sed 's/\\/\\\\/g; s/"/\\"/g' | tr '\n' ' ')
curl --silent --fail --noproxy 127.0.0.1 "$OPENAI_BASE_URL/chat/completions" \
    --header "Authorization: Bearer $OPENAI_API_KEY" \
    --json "{\"model\": \"alice\", \"messages\": [{\"role\": \"user\", \"content\": \"Question: $question Solve:\"}]}"
