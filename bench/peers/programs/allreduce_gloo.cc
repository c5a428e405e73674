// One rank of Gloo's allreduce, in turns (turn.h).
//
//   allreduce_gloo SOCKET RANK RANKS STORE INTERFACE
//
// STORE is a directory by which the ranks find each other. The variant of a
// turn is the algorithm: ring or bcube.
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "turn.h"

namespace {

using Algorithm = gloo::AllreduceOptions::Algorithm;

class Rank {
 public:
  explicit Rank(std::shared_ptr<gloo::rendezvous::Context> context) : context_(std::move(context)) {}

  void play(turns& to, const turn& t) {
    const auto algorithm = std::string(t.variant) == "ring" ? Algorithm::RING : Algorithm::BCUBE;
    std::vector<float> in(t.count), out(t.count);
    std::vector<int64_t> times(t.iterations);
    bool right = true;
    turn_fill(in.data(), t.count, context_->rank, 0);
    for (int i = 0; i < t.warmup; i++) {
      meet();
      sum(algorithm, in, out);
    }
    if (t.warmup > 0) right = turn_right(out.data(), t.count, context_->size, 0);
    turn_fill(in.data(), t.count, context_->rank, 1);
    meet();
    const rusage from = turn_usage();
    for (auto& time : times) {
      meet();
      const int64_t begun = turn_now();
      sum(algorithm, in, out);
      time = turn_now() - begun;
    }
    const rusage until = turn_usage();
    right = right && turn_right(out.data(), t.count, context_->size, 1);
    turn_done(&to, right, &from, &until, times.data(), t.iterations);
  }

 private:
  void meet() {
    gloo::BarrierOptions options(context_);
    options.setTag(tag_++);
    gloo::barrier(options);
  }

  void sum(Algorithm algorithm, std::vector<float>& in, std::vector<float>& out) {
    using Reduce = void (*)(void*, const void*, const void*, size_t);
    gloo::AllreduceOptions options(context_);
    options.setAlgorithm(algorithm);
    options.setReduceFunction(static_cast<Reduce>(&gloo::sum<float>));
    options.setInput(in.data(), in.size());
    options.setOutput(out.data(), out.size());
    options.setTag(tag_++);
    gloo::allreduce(options);
  }

  std::shared_ptr<gloo::rendezvous::Context> context_;
  uint32_t tag_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    fprintf(stderr, "usage: allreduce_gloo SOCKET RANK RANKS STORE INTERFACE\n");
    return 2;
  }
  try {
    const int number = std::stoi(argv[2]);
    gloo::transport::tcp::attr device;
    device.iface = argv[5];
    gloo::rendezvous::FileStore store(argv[4]);
    auto context = std::make_shared<gloo::rendezvous::Context>(number, std::stoi(argv[3]));
    auto wire = gloo::transport::tcp::CreateDevice(device);
    context->connectFullMesh(store, wire);
    Rank rank(context);
    turns all = turn_join(argv[1], number);
    for (turn t; turn_next(&all, &t);) rank.play(all, t);
  } catch (const std::exception& e) {
    fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
