#include "model/secret_name.h"

#include <doctest/doctest.h>

#include <string>

namespace berth {

TEST_CASE("a variable is known as a secret by whole words of its name") {
  for (const char* name : {"HF_TOKEN", "wandb_api_key", "DB_PASSWORD", "PASSWD", "CLIENT_SECRET_V2",
                           "AWS_ACCESS_KEY_ID", "SSH_PRIVATE_KEY", "KEY_PASSPHRASE", "OPENAI_APIKEY"})
    CHECK_MESSAGE(looks_like_a_secret(name), name);
  for (const char* name : {"TOKENIZERS_PARALLELISM", "SECRETARY", "MONKEY", "ACCESS", "", "PATH"})
    CHECK_MESSAGE(!looks_like_a_secret(name), name);
}

TEST_CASE("a value is known as a secret by its form") {
  const std::string letters(40, 'a');
  for (const char* beginning : {"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "hf_", "nvapi-", "sk-",
                                "xoxb-", "xoxp-", "xoxa-", "AKIA", "ASIA", "AIza"}) {
    CHECK_MESSAGE(is_known_form_of_secret(beginning + letters), beginning);
    CHECK_MESSAGE(is_known_form_of_secret(" " + (beginning + letters)), beginning);
    CHECK_MESSAGE(!is_known_form_of_secret(std::string(beginning) + "aa"), beginning);
    CHECK_MESSAGE(!is_known_form_of_secret("x" + (beginning + letters)), beginning);
  }
  CHECK(is_known_form_of_secret("AKIAIOSFODNN7EXAMPLE"));
  CHECK(is_known_form_of_secret("-----BEGIN OPENSSH PRIVATE KEY-----\nb3Blb\n"));
  CHECK(is_known_form_of_secret("-----BEGIN PRIVATE KEY-----"));
  CHECK_FALSE(is_known_form_of_secret("-----BEGIN CERTIFICATE-----\nPRIVATE KEY"));
  CHECK(is_known_form_of_secret("postgres://ada:hunter2@db:5432/x"));
  for (const char* url : {"https://example.com/a:b@c", "postgres://ada@db", "postgres://ada:$(PASSWORD)@db",
                          "http://db:5432", "postgres://ada:@db", "a b c", ""})
    CHECK_MESSAGE(!is_known_form_of_secret(url), url);
}

TEST_CASE("a variable that is empty, that names another or that names a file holds no secret") {
  CHECK(holds_a_secret("DB_PASSWORD", "hunter2"));
  CHECK(holds_a_secret("HARMLESS", "AKIAIOSFODNN7EXAMPLE"));
  CHECK_FALSE(holds_a_secret("HARMLESS", "hunter2"));
  CHECK_FALSE(holds_a_secret("DB_PASSWORD", ""));
  CHECK_FALSE(holds_a_secret("DB_PASSWORD", "$(OTHER)"));
  CHECK(holds_a_secret("DB_PASSWORD", "$(OTHER)x"));
  CHECK(holds_a_secret("DB_PASSWORD", "$()"));
  for (const char* name : {"DB_PASSWORD_FILE", "token_path", "SECRET_DIR"}) {
    CHECK_FALSE_MESSAGE(holds_a_secret(name, "/run/secrets/x"), name);
    CHECK_MESSAGE(holds_a_secret(name, "hunter2"), name);
  }
  CHECK(holds_a_secret("DB_PASSWORD", "/run/secrets/x"));
  CHECK(holds_a_secret("KEY_FILE", "-----BEGIN RSA PRIVATE KEY-----"));
  CHECK(holds_a_secret("DB_PASSWORD", "\xff\xfe"));
}

}  // namespace berth
