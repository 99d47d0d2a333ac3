#pragma once
// For tests: an authority and certificates of it, made in memory and written as files of a directory of their own.

#include <doctest/doctest.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

namespace berth::http {

class TestAuthority {
 public:
  TestAuthority() : key_(EVP_EC_gen("P-256"), &EVP_PKEY_free) {
    std::string pattern = (std::filesystem::temp_directory_path() / "berth-tls-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    directory_ = pattern;
    certificate_ = make("test authority", key_.get(), nullptr, "CA:TRUE", "", 30);
    write_certificate(path("ca.pem"), certificate_.get());
  }
  ~TestAuthority() { std::filesystem::remove_all(directory_); }
  TestAuthority(const TestAuthority&) = delete;
  TestAuthority& operator=(const TestAuthority&) = delete;

  std::string path(const std::string& name) const { return directory_ + "/" + name; }

  // Writes NAME.pem and NAME.key. `names`: such as "DNS:localhost"; empty: none.
  void sign(const std::string& name, const std::string& common_name, const std::string& names = {}, int days = 30) {
    const Key key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
    const Certificate certificate = make(common_name, key.get(), certificate_.get(), "CA:FALSE", names, days);
    write_certificate(path(name + ".pem"), certificate.get());
    write_key(path(name + ".key"), key.get());
  }

 private:
  using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
  using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

  static void extend(X509* certificate, int nid, const std::string& value) {
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value.c_str());
    REQUIRE(extension != nullptr);
    X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
  }

  Certificate make(const std::string& common_name, EVP_PKEY* key, X509* issuer, const std::string& constraints,
                   const std::string& names, int days) {
    Certificate certificate(X509_new(), &X509_free);
    X509_set_version(certificate.get(), X509_VERSION_3);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), ++serial_);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -86'400L * 60);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 86'400L * days);
    X509_set_pubkey(certificate.get(), key);
    X509_NAME* subject = X509_get_subject_name(certificate.get());
    if (!common_name.empty()) {
      X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                 reinterpret_cast<const unsigned char*>(common_name.data()),
                                 static_cast<int>(common_name.size()), -1, 0);
    }
    X509_set_issuer_name(certificate.get(), X509_get_subject_name(issuer == nullptr ? certificate.get() : issuer));
    extend(certificate.get(), NID_basic_constraints, constraints);
    if (!names.empty()) extend(certificate.get(), NID_subject_alt_name, names);
    REQUIRE(X509_sign(certificate.get(), key_.get(), EVP_sha256()) > 0);
    return certificate;
  }

  static void write_certificate(const std::string& path, X509* certificate) {
    std::FILE* file = std::fopen(path.c_str(), "w");
    REQUIRE(file != nullptr);
    CHECK(PEM_write_X509(file, certificate) == 1);
    std::fclose(file);
  }
  static void write_key(const std::string& path, EVP_PKEY* key) {
    std::FILE* file = std::fopen(path.c_str(), "w");
    REQUIRE(file != nullptr);
    ::chmod(path.c_str(), 0600);
    CHECK(PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr) == 1);
    std::fclose(file);
  }

  Key key_;
  long serial_ = 0;
  std::string directory_;
  Certificate certificate_{nullptr, &X509_free};
};

}  // namespace berth::http
