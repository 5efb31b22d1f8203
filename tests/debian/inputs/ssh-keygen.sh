ssh-keygen -q -t ed25519 -N '' -C me -f key
echo "made $?"
echo message >message
ssh-keygen -q -Y sign -f key -n file message 2>/dev/null
echo "signed $?"
echo "me $(cat key.pub)" >allowed
ssh-keygen -q -Y verify -f allowed -I me -n file -s message.sig <message >/dev/null
echo "verified $?"
rm -f key key.pub message.sig allowed
