// EnergyMeter: packages of a made powercap folder, wrapped counters, a made NVML, and what is absent.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "apps/bench/energy.h"

using trivelet::EnergyMeter;

namespace {

class Energy : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) / "trivelet_energy_test";
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void set(const std::string& zone, const std::string& file, const std::string& value) {
    std::filesystem::create_directories(folder_ / zone);
    std::ofstream(folder_ / zone / file) << value << '\n';
  }
  std::filesystem::path folder_;
};

TEST_F(Energy, PackagesAreAddedAndTheirPartsAreNot) {
  for (const char* zone : {"intel-rapl:0", "intel-rapl:1", "intel-rapl:0:0"}) {
    set(zone, "energy_uj", "5000000");
    set(zone, "max_energy_range_uj", "10000000");
  }
  set("intel-rapl:2", "energy_uj", "not a number");
  set("dtpm", "energy_uj", "1");
  EnergyMeter meter(-1, folder_.string());
  EXPECT_TRUE(meter.has_cpu());
  EXPECT_FALSE(meter.has_gpu());
  EXPECT_EQ(meter.cpu_joules(), 0);
  set("intel-rapl:0", "energy_uj", "7500000");
  set("intel-rapl:1", "energy_uj", "1000000");  // wrapped: 5 J to the end, 1 J after it
  set("intel-rapl:0:0", "energy_uj", "9000000");
  EXPECT_DOUBLE_EQ(meter.cpu_joules(), 2.5 + 6);
  set("intel-rapl:0", "energy_uj", "8000000");
  EXPECT_DOUBLE_EQ(meter.cpu_joules(), 2.5 + 6 + 0.5);
}

TEST_F(Energy, WhatIsAbsentIsAbsent) {
  EnergyMeter meter(0, (folder_ / "none").string(), "libno-such-nvml.so");
  EXPECT_FALSE(meter.has_cpu());
  EXPECT_FALSE(meter.has_gpu());
  EXPECT_EQ(meter.cpu_joules(), 0);
  EXPECT_EQ(meter.gpu_joules(), 0);
}

TEST_F(Energy, AGpuIsReadThroughNvml) {
  EnergyMeter meter(0, folder_.string(), TRIVELET_FAKE_NVML);
  ASSERT_TRUE(meter.has_gpu());
  EXPECT_DOUBLE_EQ(meter.gpu_joules(), 250);
  EXPECT_DOUBLE_EQ(meter.gpu_joules(), 500);
  EXPECT_FALSE(EnergyMeter(1, folder_.string(), TRIVELET_FAKE_NVML).has_gpu());
  EXPECT_FALSE(EnergyMeter(2, folder_.string(), TRIVELET_FAKE_NVML).has_gpu());
}

}  // namespace
