#include "model/issued_name.h"

#include <doctest/doctest.h>

namespace berth {
namespace {

TEST_CASE("issued names: an issuer and its user are told apart by the first colon") {
  for (const char* good : {"corp:ada", "corp:ada@example.com", "k8s:system:serviceaccount:ns:train",
                           "corp:Data Science", "corp:/team/nlp", "c:\xc3\xa9"})
    CHECK_MESSAGE(well_formed_issued_subject(good), good);
  for (const char* bad : {"ada", ":ada", "corp:", "corp: ada", "corp:ada ", "co rp:ada", "corp:a\tb", "corp:\xff",
                          "corp:a\xc2\x9b", "-corp:ada"})
    CHECK_FALSE_MESSAGE(well_formed_issued_subject(bad), bad);
}

}  // namespace
}  // namespace berth
