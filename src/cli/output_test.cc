#include "cli/output.h"

#include <doctest/doctest.h>

#include <boost/json/parse.hpp>
#include <cstdlib>
#include <ctime>

#include "base/csv.h"
#include "cli/columns.h"
#include "cli/printable.h"
#include "cli/when.h"
#include "model/document/document.h"

namespace berth::cli {
namespace {

Table sample() {
  Table table({{"ID", Align::kRight}, {"NAME", Align::kLeft, true}, {"STATE"}});
  table.add({"7", "a-rather-long-name-of-a-job", "running"});
  table.add({"123", "", "held"});
  return table;
}

TEST_CASE("table: columns are aligned, an empty cell is a dash, nothing trails") {
  CHECK(sample().text(0) ==
        " ID  NAME                         STATE\n"
        "  7  a-rather-long-name-of-a-job  running\n"
        "123  -                            held\n");
}

TEST_CASE("table: what may shrink is cut until the table fits, and nothing else") {
  CHECK(sample().text(30) ==
        " ID  NAME              STATE\n"
        "  7  a-rather-long-n…  running\n"
        "123  -                 held\n");
  CHECK(sample().text(5).find("a-rathe…  running") != std::string::npos);
}

TEST_CASE("printable: what would act on a terminal is shown instead") {
  CHECK(printable("a\x1b[31mb\n\t\x7f") == "a\\x1b[31mb\\n\\t\\x7f");
  CHECK(printable("\xe2\x80\xae"
                  "evil\xe2\x80\x8b\xc2\x9b") == "\\u202eevil\\u200b\\x9b");
  CHECK(printable("\xff\xc0\xaf\xed\xa0\x80") == "\\xff\\xc0\\xaf\\xed\\xa0\\x80");
  CHECK(printable("Zürich 北京 ✓") == "Zürich 北京 ✓");
  Table table({{"N"}});
  table.add({"\x1b]0;x\x07"});
  CHECK(table.text(0) == "N\n\\x1b]0;x\\x07\n");
}

TEST_CASE("printable: wide characters take two columns, combining ones none") {
  CHECK(display_width("北京") == 4);
  CHECK(display_width("e\xcc\x81") == 1);
  CHECK(shorten("北京x", 4) == "北…");
  CHECK(shorten("abc", 3) == "abc");
}

TEST_CASE("csv: RFC 4180, and no formula") {
  CHECK(csv_text_cell("a/b") == "a/b");
  CHECK(csv_text_cell("a,\"b\"\n") == "\"a,\"\"b\"\"\n\"");
  for (const char* formula : {"=1+1", "+1", "-1", "@x", "\tx", "\rx"}) CHECK(csv_text_cell(formula).find('\'') < 2);
}

TEST_CASE("csv: a table has its heading, bare numbers, and nothing that acts on a terminal") {
  Table table({{"ID", Align::kRight}, {"NAME, AS GIVEN"}});
  CHECK(table.csv() == "ID,\"NAME, AS GIVEN\"\r\n");
  table.add({"-5", "=1+1"});
  table.add({"0.25", ""});
  table.add({"7", "\x1b[31m,\n"});
  CHECK(table.csv() == "ID,\"NAME, AS GIVEN\"\r\n-5,'=1+1\r\n0.25,\r\n7,\"\\x1b[31m,\\n\"\r\n");
  for (const char* wrong : {"", "-", ".5", "--5", "5-", "1e5", "-x"}) CHECK_FALSE(is_number(wrong));
}

TEST_CASE("columns: a heading and a path, or paths alone") {
  const auto named = parse_columns("ID:id,Who:.user,MODEL:gpus.model");
  REQUIRE(named);
  REQUIRE(named->size() == 3);
  CHECK((*named)[1].title == "Who");
  CHECK((*named)[1].path == "user");
  CHECK((*named)[2].path == "gpus.model");
  const auto alone = parse_columns("id,usage.gpus");
  REQUIRE(alone);
  CHECK((*alone)[1].title == "USAGE.GPUS");
  CHECK((*alone)[1].path == "usage.gpus");
  const std::vector<std::pair<const char*, const char*>> cases{{"", "there is no column"},
                                                               {"ID:id,user", "column 'user' has no colon"},
                                                               {":id", "column ':id' has no heading"},
                                                               {"ID:", "column 'ID:' has no path"},
                                                               {"id,,user", "column '' has no path"},
                                                               {"id,", "column '' has no path"},
                                                               {"a..b", "an empty part"},
                                                               {"A:b.", "an empty part"}};
  for (const auto& one : cases) {
    CAPTURE(one.first);
    const auto columns = parse_columns(one.first);
    REQUIRE_FALSE(columns);
    CHECK(columns.error().message.find(one.second) != std::string::npos);
    CHECK(columns.error().message.ends_with("custom=ID:id,USER:user, or paths alone: custom=id,user"));
  }
}

TEST_CASE("columns: a path goes into objects and lists, and what is not there is empty") {
  const auto item = boost::json::parse(
      R"({"id":7,"held":true,"none":null,"nodes":["n1","n2"],"labels":{"run":"7","team.name":"vision"},
          "usage":{"gpus":0.5,"by":{"a":1}},"gpus":[{"model":"H100"},{"model":"A100"}]})");
  const std::vector<std::pair<const char*, const char*>> cases{{"id", "7"},
                                                               {"held", "true"},
                                                               {"none", ""},
                                                               {"nodes", "n1,n2"},
                                                               {"labels", "run=7,team.name=vision"},
                                                               {"labels.team.name", "vision"},
                                                               {"usage.gpus", "0.5"},
                                                               {"usage.by.a", "1"},
                                                               {"usage", R"({"gpus": 0.5, "by": {"a": 1}})"},
                                                               {"gpus.model", "H100,A100"},
                                                               {"nope", ""},
                                                               {"id.more", ""},
                                                               {"usage.nope", ""}};
  for (const auto& one : cases) {
    CAPTURE(one.first);
    CHECK(column_text(item, one.first) == one.second);
  }
}

TEST_CASE("columns: numbers stand at the right, and the order is that of the user") {
  ShowOptions show;
  show.columns = *parse_columns("USER:user,GPUS:gpus,MORE:nope");
  const auto list = boost::json::parse(R"([{"gpus":16,"user":"ana"},{"gpus":0.5,"user":"=bob"}])").get_array();
  CHECK(in_columns(list, show, 0) == "USER  GPUS  MORE\nana     16     -\n=bob   0.5     -\n");
  CHECK(in_columns({}, show, 0) == "USER  GPUS  MORE\n");
  show.format = Format::kCsv;
  CHECK(in_columns(list, show, 0) == "USER,GPUS,MORE\r\nana,16,\r\n'=bob,0.5,\r\n");
}

TEST_CASE("a table fits when the columns that shrink are not enough; a number is never cut") {
  Table table({{"ID", Align::kRight}, {"NAME", Align::kLeft, true}, {"STATE"}});
  table.add({"123456789", "a-long-name-of-a-job", "pending (dependency-never)"});
  CHECK(table.text(45) == "       ID  NAME      STATE\n123456789  a-long-…  pending (dependency-nev…\n");
  CHECK(table.text(10) == "       ID  NAME      STATE\n123456789  a-long-…  pending…\n");
}

TEST_CASE("a watched list ends where the screen does, and says how much more there is") {
  CHECK(fitting("a\nb\nc\n", 10, 3) == "a\nb\nc\n");
  CHECK(fitting("a\nb\nc\nd\n", 10, 3) == "a\nb\n… 2 lines more\n");
  CHECK(fitting("a\n0123456789x\nc\nd\n", 10, 4) == "a\n0123456789x\n… 2 lines more\n");
  CHECK(fitting("a\n\n\nd\n", 10, 3) == "a\n\n… 2 lines more\n");
  CHECK(fitting("a\nb\nc\nd\n", 10, 0) == "a\nb\nc\nd\n");
}

TEST_CASE("a path is cut at its front, where it says least") {
  CHECK(shorten_front("research/nlp", 12) == "research/nlp");
  CHECK(shorten_front("research/nlp", 8) == "…/nlp");
  CHECK(shorten_front("研究/言語", 5) == "…言語");
  CHECK(shorten_front("研究/言語", 4) == "…語");
  CHECK(shorten_front("abc", 1) == "…");
  Table table({{"ID"}, {"QUEUE", Align::kLeft, true, true}});
  table.add({"7", "product/search/ranking"});
  CHECK(table.text(16) == "ID  QUEUE\n7   …/ranking\n");
}

TEST_CASE("json and yaml: the same value, short numbers without exponents") {
  const auto value = boost::json::parse(R"({"a":[1,0.5,{"b":null}],"c":"x: \u001b","d":{},"e":[],"f":true,"g":"007"})");
  CHECK(json_line(value) ==
        "{\"a\": [1, 0.5, {\"b\": null}], \"c\": \"x: \\u001b\", \"d\": {}, \"e\": [], \"f\": true, \"g\": \"007\"}\n");
  CHECK(boost::json::parse(json_text(value)) == value);
  const auto read_back = document::parse(yaml_text(value), "yaml");
  REQUIRE(read_back);
  CHECK(boost::json::parse(document::to_json_text(*read_back)) == value);
}

TEST_CASE("when: ISO times, spans before now, and nothing else") {
  const Timestamp now{1'800'000'000'000};
  CHECK(parse_when("now", now)->ms == now.ms);
  CHECK(parse_when("-24h", now)->ms == now.ms - 86'400'000);
  CHECK(parse_when("-1h30m", now)->ms == now.ms - 5'400'000);
  CHECK(to_iso8601(*parse_when("2026-11-21T08:15:30Z", now)) == "2026-11-21T08:15:30.000Z");
  for (const char* wrong : {"", "24h", "-24", "--1h", "yester", "never", "25:00", "yesterday 8", "h ago", "in ",
                            "3 moons ago", "-90000000d", "2026-02-30"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_when(wrong, now));
  }
}

TEST_CASE("when: a past moment is the number of an event, or a time") {
  const Timestamp now{1'800'000'000'000};
  CHECK(*moment_when("", now) == "");
  CHECK(*moment_when("348", now) == "348");
  CHECK(*moment_when("2026-11-20T10:00Z", now) == "2026-11-20T10:00:00.000Z");
  CHECK(*moment_when("2h ago", now) == to_iso8601({now.ms - 7'200'000}));
  CHECK_FALSE(moment_when("348th", now));
}

TEST_CASE("when: words and times of day are of the reader's zone") {
  const char* before = std::getenv("TZ");
  const std::string zone = before == nullptr ? "" : before;
  ::setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
  ::tzset();
  const Timestamp now = *from_iso8601("2026-03-29T20:30:00Z");  // 22:30 in summer time, which began in the last night
  const auto at = [&](const char* text) {
    const auto time = parse_when(text, now);
    return time ? to_iso8601(*time) : time.error().message;
  };
  CHECK(at("today") == "2026-03-28T23:00:00.000Z");
  CHECK(at("yesterday 18:00") == "2026-03-28T17:00:00.000Z");
  CHECK(at("08:15:30") == "2026-03-29T06:15:30.000Z");
  CHECK(at("tomorrow") == "2026-03-29T22:00:00.000Z");
  CHECK(at("2026-11-21 18:00") == "2026-11-21T17:00:00.000Z");
  CHECK(at("2026-11-21") == "2026-11-21T00:00:00.000Z");
  CHECK(at("2h ago") == "2026-03-29T18:30:00.000Z");
  CHECK(at("3 days ago") == "2026-03-26T20:30:00.000Z");
  CHECK(at("in 1 hour") == "2026-03-29T21:30:00.000Z");
  CHECK(clock_text("2026-03-29T20:30:00.000Z") == "2026-03-29 22:30:00+02:00");
  CHECK(at("2027-03-28 02:30") ==
        "'2027-03-28 02:30': the clocks of this zone skip that time; give another, such as "
        "2027-03-28T01:30:00.000Z (2027-03-28 03:30:00+02:00)");
  CHECK(at("2027-03-28 03:00") == "2027-03-28T01:00:00.000Z");
  CHECK(at("2027-10-31 02:30") ==
        "'2027-10-31 02:30': the clocks of this zone show that time twice; give 2027-10-31T00:30:00.000Z "
        "(2027-10-31 02:30:00+02:00) or 2027-10-31T01:30:00.000Z (2027-10-31 02:30:00+01:00)");
  CHECK(at("2027-10-31 03:00") == "2027-10-31T02:00:00.000Z");
  CHECK(at("02:30").find("skip that time") != std::string::npos);  // of this very day
  if (before == nullptr)
    ::unsetenv("TZ");
  else
    ::setenv("TZ", zone.c_str(), 1);
  ::tzset();
}

TEST_CASE("when: spans in two units") {
  CHECK(span_text(-5) == "0s");
  CHECK(span_text(59'999) == "59s");
  CHECK(span_text(192'000) == "3m12s");
  CHECK(span_text(7'500'000) == "2h05m");
  CHECK(span_text(273'600'000) == "3d04h");
  CHECK(age_text("2026-11-21T08:15:30.000Z", *from_iso8601("2026-11-21T08:16:00Z")) == "30s");
  CHECK(age_text("", {}) == "");
  CHECK(clock_text("2026-11-21T08:15:30.250Z") == "2026-11-21 08:15:30Z");
  CHECK(clock_text("soon") == "soon");
}

}  // namespace
}  // namespace berth::cli
