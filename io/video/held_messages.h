// Libraries that print on standard error by themselves. Internal to io.
#pragma once

namespace trivelet::io {

/// While one lives, what the process prints on standard error is held back. Then all of it is printed, but for lines of
/// libjxl, which tells there of what it refuses: that is in an error of ours. So nothing of other threads is lost.
///
/// Any number may live at once, in any threads. If there is no room for a temporary file, nothing is held back.
class HeldMessages {
 public:
  /// Does nothing if not `on`.
  explicit HeldMessages(bool on);
  ~HeldMessages();
  HeldMessages(const HeldMessages&) = delete;
  HeldMessages& operator=(const HeldMessages&) = delete;

 private:
  bool on_;
};

}  // namespace trivelet::io
