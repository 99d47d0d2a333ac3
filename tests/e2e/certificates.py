"""Certificates of the tests' own, made by openssl: an authority, and what it signs."""
import os
import subprocess


def openssl(*words, text=None):
    done = subprocess.run(["openssl", *words], capture_output=True, input=text, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


class Authority:
    def __init__(self, directory, name="test-ca"):
        self.directory, self.name = directory, name
        self.file, self.key = self.path(name + ".pem"), self.path(name + ".key")
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", self.key,
                "-out", self.file, "-days", "30", "-subj", "/CN=" + name)

    def path(self, name):
        return os.path.join(self.directory, name)

    def sign(self, name, subject, extensions="", days=30):
        """Returns the files of a certificate and of its key."""
        key, request, certificate = (self.path(f"{name}.{end}") for end in ("key", "csr", "pem"))
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", key, "-out", request,
                "-subj", subject)
        with open(self.path(name + ".ext"), "w") as file:
            file.write(extensions)
        openssl("x509", "-req", "-in", request, "-CA", self.file, "-CAkey", self.key, "-CAcreateserial", "-out", certificate,
                "-days", str(days), "-extfile", self.path(name + ".ext"))
        return certificate, key

    def sign_server(self, name="server", names="DNS:localhost,IP:127.0.0.1", days=30):
        return self.sign(name, "/CN=" + name, "subjectAltName=" + names + "\n", days)
