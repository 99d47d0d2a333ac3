// fuzz: berth_model
// A job.yaml or JSON from anybody: no text may crash the decoder, a refusal names the file, and what is accepted prints
// as YAML and as JSON that read back as the same job, and survives the model's own JSON.

#include <boost/json/value.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "model/document/job_document.h"
#include "model/json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace berth;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto job = document::read_job(text, "fuzz.yaml");
  if (!job) {
    BERTH_CHECK(job.error().message.starts_with("fuzz.yaml:"));
    return 0;
  }
  const document::Node node = document::job_node(*job);
  const auto from_yaml = document::read_job(document::to_yaml(node), "back.yaml");
  BERTH_CHECK(from_yaml.has_value());
  const auto from_json = document::read_job(document::to_json_text(node), "back.json");
  BERTH_CHECK(from_json.has_value());
  BERTH_CHECK(*from_yaml == *from_json);
  BERTH_CHECK(document::job_to_yaml(*from_yaml) == document::to_yaml(node));
  const auto from_model = berth::from_json<JobSpec>(to_json(*job));
  BERTH_CHECK(from_model.has_value());
  BERTH_CHECK(*from_model == *job);
  return 0;
}
