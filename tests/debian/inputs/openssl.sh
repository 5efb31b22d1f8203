set -e
openssl dgst -sha3-256 in/text
openssl enc -aes-256-cbc -pbkdf2 -S 0123456789abcdef -pass pass:secret -in in/text -out packed
openssl enc -d -aes-256-cbc -pbkdf2 -S 0123456789abcdef -pass pass:secret -in packed | cmp - in/text
openssl genrsa -out key.pem 2048 2>/dev/null
openssl dgst -sha256 -sign key.pem -out sign in/numbers
openssl rsa -in key.pem -pubout -out public.pem 2>/dev/null
openssl dgst -sha256 -verify public.pem -signature sign in/numbers
openssl speed -seconds 1 -bytes 64 -evp md5 >/dev/null 2>&1
rm -f key.pem public.pem sign
