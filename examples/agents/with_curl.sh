#!/bin/sh
# One question by curl: python train.py --env "command:sh examples/agents/with_curl.sh"
# Standard output is the answer that is graded.
question=$(printf '%s' "$COTERIE_QUESTION" | sed 's/\\/\\\\/g; s/"/\\"/g' | tr '\n' ' ')
message="{\"role\": \"user\", \"content\": \"Question: $question Let's solve this step by step:\"}"
reply=$(curl --silent --fail --noproxy 127.0.0.1 "$OPENAI_BASE_URL/chat/completions" \
    --header "Authorization: Bearer $OPENAI_API_KEY" \
    --json "{\"model\": \"alice\", \"messages\": [$message]}") || exit
python3 -c 'import json, sys
print(json.loads(sys.argv[1])["choices"][0]["message"]["content"])' "$reply"
