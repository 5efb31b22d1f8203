export GNUPGHOME=$PWD/h
mkdir -m 700 h
gpg --batch -q --passphrase secret --pinentry-mode loopback --s2k-count 65536 -c -o packed in/numbers
echo "packed $?"
gpg --batch -q --passphrase secret --pinentry-mode loopback -d packed | cksum
gpg --print-md sha512 in/text | cksum
gpgconf --kill all
rm -rf h packed
