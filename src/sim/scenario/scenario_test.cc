#include "sim/scenario/scenario.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "sim/scenario/directives.h"
#include "sim/scenario/words.h"

namespace berth::sim {

TEST_CASE("a scenario's output is the script with what happened, and running it again changes nothing") {
  const std::string script =
      "# comment\ncluster\n  model H100\n  queue a\n\nnodes n1 gpus=2xH100\n----\nwrong\n\nsubmit j queue=a gpus=1\n";
  const std::string actual = run_scenario(script);
  CHECK_NE(actual.find("0s      j starts on n1[0], borrowed"), std::string::npos);
  CHECK_EQ(actual.find("wrong"), std::string::npos);
  CHECK_EQ(run_scenario(actual), actual);
}

TEST_CASE("a difference names its directive and both lines") {
  const std::string diff =
      scenario_diff("run 1m\n----\na\n\nrun 2m\n----\nb\n", "run 1m\n----\na\n\nrun 2m\n----\nc\n");
  CHECK_EQ(diff, "  run 2m\n- b\n+ c\n");
}

TEST_CASE("what is not understood is said in the output") {
  CHECK_NE(run_scenario("frobnicate x\n").find("error: no directive 'frobnicate'"), std::string::npos);
  CHECK_NE(run_scenario("run fast\n").find("error: "), std::string::npos);
  CHECK_NE(run_scenario("submit j gpus=many\n").find("error: gpus: 'many' is not an amount"), std::string::npos);
}

namespace {

const std::string kFleet = "cluster\n  model H100\n  queue a\n\nnodes n[1-2] gpus=2xH100\n\n";

// Checks the output of the last block, and that it changed nothing.
void refuses(const std::string& block, const std::string& what) {
  const std::string before = run_scenario(kFleet + "jobs\n\nnodes\n\nqueues\n");
  const std::string actual = run_scenario(kFleet + block + "\n\njobs\n\nnodes\n\nqueues\n");
  CAPTURE(actual);
  CHECK_NE(actual.find("----\nerror: " + what), std::string::npos);
  CHECK_EQ(actual.substr(actual.find("\njobs\n----")), before.substr(before.find("\njobs\n----")));
}

void cluster_refuses(const std::string& line, const std::string& what) {
  refuses("cluster\n  queue b\n  " + line, what);
}

}  // namespace

TEST_CASE("what would wrap, or mean something else, is refused and changes nothing") {
  refuses("nodes n1 gpus=2xH100", "there is a node 'n1' already");
  refuses("nodes n3 n[3-4]", "'n3' is named twice");
  refuses("nodes n[3-2]", "'n[3-2]' runs backwards; write the smaller number first");
  refuses("nodes n[3-4][5-6]", "'n[3-4][5-6]' is not NAME[FIRST-LAST]");
  refuses("nodes n[3]", "'n[3]' is not NAME[FIRST-LAST]");
  refuses("nodes n[", "'n[' is not NAME[FIRST-LAST]");
  refuses("nodes n[3-4", "'n[3-4' is not NAME[FIRST-LAST]");
  refuses("nodes n[03-04]", "'n[03-04]' is not NAME[FIRST-LAST]");
  refuses("nodes n[1-9999999]", "'n[1-9999999]' is more than 100000 names");
  refuses("nodes n,3", "'n,3' is not a name");
  refuses("nodes n3 gpus=17xH100", "gpus: a node has 16 GPUs at most");
  refuses("nodes n3 gpus=2xH100xA100", "gpus: '2xH100xA100' is not COUNTxMODEL, such as 8xH100");
  refuses("nodes n3 gpus=2x=H100", "gpus: '2x=H100' is not COUNTxMODEL, such as 8xH100");
  refuses("nodes a[1-100000] b1", "the line names more than 100000 nodes; share them out");
  refuses("nodes n3 pool==x", "pool: '=x' is not a name");
  refuses("nodes n3 nvlink=2", "nvlink is of use only with gpus");
  refuses("nodes n3 gpus=4xH100 nvlink=5", "nvlink: the GPUs can be in 1 to 4 islands");
  refuses("nodes n3 taint=a,", "taint: there is an empty name in 'a,'");
  refuses("nodes n3 taint=a,b,a", "taint: 'a' is given twice");
  refuses("nodes n3 taint=a:b", "taint: 'a:b': there is no effect 'b'; NoSchedule and NoExecute keep tasks away");
  refuses("nodes n3 taint==a", "taint: '=a' has no key");
  refuses("nodes n3 taint=*", "taint: '*' is no taint; give its key");
  refuses("nodes n3 at=b1", "at: the cluster has no topology; a line such as 'topology block rack' gives it one");
  refuses("nodes n3 at=b1/*", "at: '*' is not a name");
  refuses("nodes n3 memory=9EiB", "node 'n3' must have 0 to 1099511627 CPUs and 0 to 1 EiB of memory");
  refuses("nodes n3 memory=-1GiB", "memory: -1GiB is negative");
  refuses("nodes n3 gpus=2xH100 numa=3", "numa: the GPUs can be in 1 to 2 domains");
  refuses("nodes n3 numa=2", "numa is of use only with gpus");
  refuses("nodes n3 at=b1//r1", "at: there is an empty name in 'b1//r1'");
  refuses("nodes n3 label=zone", "label: 'zone' is not KEY:VALUE");
  refuses("nodes n3 label=:zone", "label: ':zone' is not KEY:VALUE");
  refuses("nodes n3 label==zone:a", "label: '=zone:a' is no label");
  refuses("nodes n3 label=zone:a,zone:b", "label: 'zone' is given twice");
  refuses("nodes n3 cpus=2147483647", "node 'n3' must have 0 to 1099511627 CPUs");
  refuses("nodes gpus=2xH100", "nodes: name the nodes");
  refuses("gpu n1 256 fails", "node 'n1' has no GPU 256");
  refuses("gpu n1 2 fails", "node 'n1' has no GPU 2");
  refuses("gpu n1 1 broken", "gpu: write 'gpu NODE GPU fails|heals|fenced|lifted'");
  refuses("run -5m", "-5m is negative");
  refuses("run 5", "'5' is not a time");
  refuses("run 367d", "'367d' is too long");
  refuses("run 31622400001ms", "31622400001 is out of range; give 0 to 31622400000");
  refuses("run 5xms", "'5xms' is not a time");
  refuses("submit j queue=a gpus=0 model=H100", "model is of use only with gpus");
  refuses("exit j", "no job 'j'");
  refuses("return n[1-3]", "no node 'n3'");
  refuses("cordon n[1-3]", "no node 'n3'");
  refuses("drain n1 gone-in=0s", "gone-in: 1s is the least");
  refuses("maintenance add n1 n1 for=1h", "'n1' is named twice");
  refuses("submit j.", "'j.' is not a name");
  refuses("submit j queue=a gpus=-1", "gpus: -1 is negative");
  refuses("submit j queue=a gpus=1.5", "gpus: whole GPUs, or a share of one");
  refuses("submit j queue=a gpus=1.", "gpus: '1.' is not an amount");
  refuses("submit j queue=a gpus=4294967297", "gpus: '4294967297' is too large");
  refuses("submit j queue=a gpus=1 tasks=4294967297", "tasks: 4294967297 is out of range");
  refuses("submit j queue=a gpus=1 also=side:4294967297x1", "also: 'side:4294967297x1' is not NAME:TASKSxGPUS");
  refuses("submit j queue=a gpus=1 also=side:1x1@", "also: 'side:1x1@' is not NAME:TASKSxGPUS");
  refuses("submit j queue=a gpus=1 retries=4294967297", "retries: 4294967297 is out of range");
  refuses("submit j queue=a gpus=1 time-limit=500ms", "time-limit: '500ms' is not a time");
  refuses("submit j queue=a gpus=1 time-limit=0", "time-limit: 1s is the least");
  refuses("submit j queue=a gpus=1 tasks=0", "tasks: 0 is out of range; give 1 to 65536");
  refuses("submit j queue=a gpus=1 min-tasks=0", "min-tasks: 0 is out of range; give 1 to 65536");
  refuses("submit j queue=a gpus=1 elements=0", "elements: 0 is out of range; give 1 to 1000000");
  refuses("submit j queue=a gpus=1 elements=2 at-once=0", "at-once: 0 is out of range; give 1 to 1000000");
  refuses("submit j queue=a gpus=1 service max-unavailable=0", "max-unavailable: 0 is out of range; give 1 to 65536");
  refuses("submit j queue=a gpus=1 retries=1001", "retries: 1001 is out of range; give 0 to 1000");
  refuses("submit j queue=a gpus=1 also=side:0x1", "also: 'side:0x1' is not NAME:TASKSxGPUS");
  refuses("submit j queue=a gpus=1 elements=2 at-once=3", "at-once: there are no more than 2 elements");
  refuses("submit j queue=a gpus=1 deadline=10m earliest=10m", "deadline: the job may not start before that");
  refuses("submit j queue=a numa=restricted", "numa is of use only with gpus");
  refuses("submit j queue=a gpus=1 also-pool=spot", "also-pool is of use only with also");
  refuses("submit j queue=a gpus=1 also=w:1x1 also-selects=zone", "also-selects: 'zone' is not KEY:VALUE");
  refuses("submit j queue=a gpus=1 also=w:1x1 also-tolerates=spot,",
          "also-tolerates: there is an empty name in 'spot,'");
  refuses("submit j queue=a gpus=1 tolerates==x", "tolerates: '=x' has no key");
  refuses("submit j queue=a gpus=1 rules==a", "rules: '=a' is no condition");
  refuses("submit j queue=a gpus=1 rules=cores>many", "rules: 'cores>many': Gt needs one value that is a whole number");
  refuses("submit j queue=a gpus=1 runs=1s exit=256", "exit: 256 is out of range; give 0 to 255");
  refuses("submit j queue=a gpus=1 model=H100,", "model: there is an empty name in 'H100,'");
  refuses("submit j queue=a gpus=1 model=H100,H100", "model: 'H100' is given twice");
  refuses("submit j queue=a gpus=1 selects=a:b:c", "selects: 'a:b:c' is not KEY:VALUE");
  refuses("submit j queue=a gpus=1 near=app:x", "near: 'app:x' is not KEY:VALUE@LEVEL");
  refuses("submit j queue=a gpus=1 class=infrence",
          "class: 'infrence' is none of training, inference, dev, batch; did");
  refuses("submit j queue=a gpus=1 after=nobody", "after: no job 'nobody'");
}

TEST_CASE("a word that nothing would read is refused, with the one that was meant") {
  refuses("submit j queue=a gpus=1 priorty=high", "submit: there is no option 'priorty='; did you mean 'priority='?");
  refuses("submit j srevice queue=a gpus=1", "submit: nothing reads 'srevice'; did you mean 'service'?");
  refuses("submit j held=yes queue=a gpus=1", "submit: there is no option 'held='; did you mean 'held'?");
  refuses("submit j priority queue=a gpus=1", "submit: nothing reads 'priority'; did you mean 'priority='?");
  refuses("submit j k queue=a gpus=1", "submit: nothing reads 'k'; write 'submit NAME', and after it any of held, ");
  refuses("submit j queue=a queue=a gpus=1", "submit: 'queue=' is given twice");
  refuses("submit j held held queue=a gpus=1", "submit: 'held' is given twice");
  refuses("submit j queue= gpus=1", "submit: 'queue=' has no value");
  refuses("submit j =a gpus=1", "submit: nothing stands before the '=' of '=a'");
  refuses("submit", "submit: write 'submit NAME'");
  refuses("nodes n3 gpus=2xH100 gpus=4xH100", "nodes: 'gpus=' is given twice");
  refuses("nodes n3 gpu=2xH100", "nodes: there is no option 'gpu='; did you mean 'gpus='?");
  refuses("cordon n1 n2", "cordon: nothing reads 'n2'; write 'cordon NODES'");
  refuses("cordon n1 gone-in=1m", "cordon: there is no option 'gone-in='; write 'cordon NODES'");
  refuses("cancel a b", "cancel: nothing reads 'b'; write 'cancel NAME'");
  refuses("gpu n1 0", "gpu: write 'gpu NODE GPU fails|heals|fenced|lifted'");
  refuses("restart now", "restart: nothing reads 'now'; write 'restart', and after it any of from-checkpoint");
  refuses("why j detials", "why: nothing reads 'detials'; did you mean 'details'?");
  refuses("maintenance", "no directive 'maintenance'; known are maintenance add, maintenance cancel, maintenance list");
  refuses("maintenance list n1", "maintenance list: nothing reads 'n1'");
  refuses("sumbit j", "no directive 'sumbit'; did you mean 'submit'?");
}

TEST_CASE("two words of which one would not be read are refused together") {
  refuses("submit j queue=a gpus=1 fails=1 exit=2", "fails and exit");
  refuses("submit j queue=a gpus=1 saves=1s leaves=1s", "saves and leaves");
  refuses("submit j queue=a gpus=1 ignores-signal saves=1s", "ignores-signal");
  refuses("submit j queue=a gpus=1 service elements=3", "a job is a service or has elements, not both");
  refuses("submit j queue=a gpus=1 at-once=3", "at-once is of use only with elements");
  refuses("submit j queue=a gpus=1 max-unavailable=1", "max-unavailable is of use only with service");
  refuses("submit j queue=a gpus=1 cannot-start runs=1m", "cannot-start and runs: what does not start does nothing");
  refuses("submit j queue=a gpus=1 cannot-start saves=1s", "cannot-start and saves: what does not start does nothing");
  refuses("submit j queue=a gpus=1 cannot-start ignores-signal", "cannot-start and ignores-signal");
  refuses("submit j queue=a gpus=1 exit=1", "exit is of use only with runs");
  refuses("submit j queue=a gpus=1 fails=1", "fails is of use only with runs");
}

TEST_CASE("the lines of a cluster are held to the same, and none is said twice") {
  cluster_refuses("modell H100", "'modell H100': no line of a cluster 'modell'; did you mean 'model'?");
  cluster_refuses("queue c wieght=2",
                  "'queue c wieght=2': queue: there is no option 'wieght='; did you mean 'weight='?");
  cluster_refuses("queue c promote-after=1h",
                  "'queue c promote-after=1h': promote-after is of use only with thresholds");
  cluster_refuses("queue c max=gpus:8,gpus:4", "'queue c max=gpus:8,gpus:4': max: 'gpus' is given twice");
  cluster_refuses("queue c max=:8", "'queue c max=:8': max: ':8' is not RESOURCE:AMOUNT");
  cluster_refuses("queue b", "queue: 'b' is given twice");
  cluster_refuses("pool p brust=1", "'pool p brust=1': pool: there is no option 'brust='");
  cluster_refuses("topology rack\n  topology block", "topology: the levels stand in one line");
  cluster_refuses("scheduling", "'scheduling': the line says nothing; give a rule");
  cluster_refuses("scheduling grace=1s\n  scheduling grace=2s", "scheduling: 'grace=' is given twice");
  cluster_refuses("scheduling score=best", "'scheduling score=best': score: 'best' is none of best-fit, fragmentation");
  cluster_refuses("priority p value=high", "'priority p value=high': value: 'high' is not an integer");
  cluster_refuses("priority p value=1000000001",
                  "'priority p value=1000000001': value: 1000000001 is out of range; give -1000000 to 1000000000");
  cluster_refuses("priority p default", "'priority p default': a priority class needs a value, such as value=500");
  cluster_refuses("pool default",
                  "'pool default': pool 'default' is there by itself, for all queues; leave the line out");
  cluster_refuses("scheduling holds=1",
                  "'scheduling holds=1': scheduling: there is no option 'holds='; it is now 'backfill-reservations='");
  cluster_refuses("pool p apart=node",
                  "'pool p apart=node': pool: there is no option 'apart='; it is now 'trust-domain-isolation='");
  cluster_refuses("queue c use-or-lose=7d",
                  "'queue c use-or-lose=7d': queue: there is no option 'use-or-lose='; it is now 'guarantee-decay='");
  cluster_refuses("queue c guaranteed=gpus:1 guarantee-decay=0s",
                  "'queue c guaranteed=gpus:1 guarantee-decay=0s': guarantee-decay: 1s is the least");
}

TEST_CASE("a line is of printable ASCII, and no line stands where it would not be read") {
  refuses("submit\tj queue=a", "byte 7 of the line is a tab");
  refuses("jobs\r", "byte 5 of the line is a carriage return");
  refuses(std::string("jobs\0", 5), "byte 5 of the line is no printable ASCII character");
  refuses("cancel \xff", "byte 8 of the line is no printable ASCII character");
  refuses("cancel \x7f", "byte 8 of the line is no printable ASCII character");
  refuses("\xef\xbb\xbfjobs", "byte 1 of the line is no printable ASCII character");
  refuses("submit \"my job\" queue=a", "there is a quotation mark in the line");
  refuses("cancel " + std::string(5000, 'j'), "the line has 5007 bytes; the most is 4096");
  refuses("cluster\n  queue b\n\tqueue c", "below the directive, byte 1 of the line is a tab");
  refuses("cluster\nqueue b", "'queue b' is not indented");
  refuses("cluster\n  queue b\n  ", "a line below has spaces alone; an empty line ends a block");
  refuses("  queue b", "the line is indented and stands below no cluster");
  refuses("submit j queue=a gpus=1\nsubmit k queue=a gpus=1", "'submit k queue=a gpus=1' stands below submit");
}

TEST_CASE("a submission that makes no job leaves an earlier one of the name to behave as it did") {
  const std::string submit = "submit j queue=a gpus=1 runs=1h retries=1 fails=1 key=k\n\n";
  for (const char* other : {"submit j queue=nowhere gpus=1 runs=1s", "submit j queue=a gpus=1 runs=1s key=k"}) {
    const std::string actual = run_scenario(kFleet + submit + other + "\n\nrun 1h1m\n\nrun 30m\n\njobs\n");
    CAPTURE(actual);
    CHECK_NE(actual.find("\njobs\n----\nj: running on n1[0]\n"), std::string::npos);
  }
}

TEST_CASE("a GPU that fails is failed whatever registers, until it is well") {
  const std::string fails = kFleet + "gpu n1 0 fails\n\n";
  for (const char* then : {"restart", "restart from-checkpoint", "lose n1\n\nrun 5m\n\nreturn n1",
                           "lose n1\n\nrun 15s\n\nreturn n1", "kill-node n1\n\nrun 5m\n\nboot n1"}) {
    const std::string actual = run_scenario(fails + then + "\n\nnodes\n\ngpu n1 0 heals\n\n" + then + "\n\nnodes\n");
    CAPTURE(actual);
    const std::size_t failed = actual.find("n1: ready; free GPUs 1; failed GPUs 0\n");
    REQUIRE_NE(failed, std::string::npos);
    CHECK_NE(actual.find("n1: ready; free GPUs 0-1\n", failed), std::string::npos);
  }
}

namespace {

bool is_word(char c) { return (c >= 'a' && c <= 'z') || c == '-'; }

// Returns true if the text has the word as a whole word.
bool names_word(const std::string& text, const std::string& word) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || !is_word(text[at - 1]);
    const bool ends = !is_word(word.back()) || at + word.size() == text.size() || !is_word(text[at + word.size()]);
    if (begins && ends) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("docs/scenarios.md names every word that is known, and no option that is not") {
  std::ifstream in("docs/scenarios.md");
  std::stringstream content;
  content << in.rdbuf();
  const std::string page = content.str();
  REQUIRE_FALSE(page.empty());
  std::vector<std::string> options;
  for (const auto table : {directives(), cluster_lines()}) {
    for (const Directive& directive : table) {
      CHECK_MESSAGE(names_word(page, std::string(directive.verb)), directive.verb);
      for (const std::string& flag : split(directive.flags, ' '))
        CHECK_MESSAGE((flag.empty() || names_word(page, flag)), flag);
      for (const std::string& option : split(directive.options, ' ')) {
        CHECK_MESSAGE((option.empty() || names_word(page, option + "=")), option);
        options.push_back(option);
      }
    }
  }
  for (std::size_t equals = page.find('='); equals != std::string::npos; equals = page.find('=', equals + 1)) {
    std::size_t begin = equals;
    while (begin > 0 && is_word(page[begin - 1])) --begin;
    const std::string option = page.substr(begin, equals - begin);
    CHECK_MESSAGE(std::find(options.begin(), options.end(), option) != options.end(), option);
  }
}

TEST_CASE("what is no scenario is said, and leaves with 2") {
  const auto folder = std::filesystem::temp_directory_path() / ("berth_scenario_test_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "comment.txt") << "# nothing\n\n";
  std::ofstream(folder / "jobs.txt") << "jobs\n";
  // The exit code and the output of both streams.
  const auto plays = [&](const std::string& name, std::string_view flag) {
    std::ostringstream told;
    std::streambuf* out = std::cout.rdbuf(told.rdbuf());
    std::streambuf* err = std::cerr.rdbuf(told.rdbuf());
    const std::string path = (folder / name).string();
    const std::string_view args[] = {path, flag};
    const int code = scenario_main(std::span(args).first(flag.empty() ? 1 : 2));
    std::cout.rdbuf(out);
    std::cerr.rdbuf(err);
    return std::to_string(code) + " " + told.str();
  };
  const std::string path = folder.string() + "/";
  std::filesystem::create_directories(folder / "empty");
  CHECK_EQ(plays("empty", ""), "2 " + path + "empty: no scenario (*.txt) in this folder or below it\n");
  CHECK_EQ(plays("absent.txt", ""), "2 " + path + "absent.txt: cannot be read\n");
  CHECK_EQ(plays("comment.txt", ""), "2 " + path + "comment.txt: has no block\n");
  CHECK_EQ(plays("jobs.txt", "--rewrit"), "2 scenario: there is no flag '--rewrit'; known is --rewrite\n");
  CHECK_EQ(plays("jobs.txt", ""), "1 " + path + "jobs.txt differs:\n  jobs\n+ ----\n");
  CHECK_EQ(plays("jobs.txt", "--rewrite"), "0 " + path + "jobs.txt: rewritten\n");
  CHECK_EQ(plays("jobs.txt", ""), "0 ");
  std::ofstream(folder / "cut.txt") << "jobs\n----";
  CHECK_EQ(plays("cut.txt", ""), "1 " + path + "cut.txt differs:\n  (in empty lines, or in the end of the last)\n");
  std::filesystem::remove_all(folder);
}

TEST_CASE("a folder stands for the scenarios in it and below it, sorted and named relative to it") {
  const auto folder = std::filesystem::temp_directory_path() / ("berth_scenario_files_" + std::to_string(::getpid()));
  std::filesystem::create_directories(folder / "quota");
  for (const char* name : {"quota/max.txt", "cordon.txt", "quota/borrowing.txt", "CMakeLists.txt", "INDEX.md"})
    std::ofstream(folder / name) << "jobs\n";
  const auto names = [&](const std::string& path) {
    std::string listed;
    const auto files = scenario_files(path);
    REQUIRE(files);
    for (const ScenarioFile& file : *files) listed += file.name + " ";
    return listed;
  };
  CHECK_EQ(names(folder.string()), "cordon.txt quota/borrowing.txt quota/max.txt ");
  CHECK_EQ(names((folder / "quota/").string()), "borrowing.txt max.txt ");
  const std::string file = (folder / "cordon.txt").string();
  CHECK_EQ(names(file), file + " ");
  std::filesystem::remove_all(folder);
}

}  // namespace berth::sim
